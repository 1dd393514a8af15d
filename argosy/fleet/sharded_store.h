#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/fleet/local_store.h"
#include "argosy/fleet/sharded_rows.h"

namespace argosy {

/// Parameters that every rank has, and rows of which each rank has a part. Rows are saved, loaded
/// and read by the first rank, while all others help it: they do their part of what it calls.
/// Thread safety: none.
class ShardedStore final : public TableStore {
 public:
  ShardedStore(Group& group, LocalStore& own, ShardedRows& rows)
      : group_(group), own_(own), rows_(rows) {}

  std::vector<NamedTensor> persistables() override { return own_.persistables(); }
  void restore(const std::vector<NamedTensor>& values) override { own_.restore(values); }
  std::vector<std::string> sparse_tables() const override { return own_.sparse_tables(); }
  SavedTables save(Env& env, const std::string& folder, uint64_t generation) override;
  void load(Env& env, const std::string& folder, std::span<const SavedTable> tables) override;
  TableRows rows(const std::string& table) override;
  size_t shrink(uint32_t unseen) override;

  /// This rank's part.
  LocalStore& own() { return own_; }

  /// The first rank between begin_alone() and end_alone(), the others in help(), which returns when
  /// the first has ended.
  void begin_alone() { is_alone_ = true; }
  void end_alone();
  void help(Env& env);

  /// Rows of a batch for inference: of the first rank's while it is helped, else of every rank's.
  void infer(Batch& batch);
  /// This rank has no batch any more: returns when no other has one either.
  void end_inference();

 private:
  bool is_first() const { return group_.rank() == 0; }
  void order(const std::string& line, std::string_view what);
  void save_part(Env& env, const std::string& folder, uint64_t generation);
  void load_part(Env& env, const std::string& folder, std::span<const SavedTable> tables);
  void send_rows(const std::string& table);
  size_t shrink_part(uint32_t unseen);

  Group& group_;
  LocalStore& own_;
  ShardedRows& rows_;
  bool is_alone_ = false;
};

}  // namespace argosy

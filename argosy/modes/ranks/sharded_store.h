#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/modes/local_store.h"
#include "argosy/modes/ranks/sharded_rows.h"

namespace argosy {

/// Replicated parameters and sharded rows. Rank 0 saves, loads and reads rows while all others
/// help it: each does its part of what rank 0 calls. Thread safety: none.
class ShardedStore final : public TableStore {
 public:
  ShardedStore(comm::Group& group, LocalStore& own, ShardedRows& rows)
      : group_(group), own_(own), rows_(rows) {}

  std::vector<NamedTensor> persistables() override { return own_.persistables(); }
  void restore(const std::vector<NamedTensor>& values) override { own_.restore(values); }
  std::vector<std::string> sparse_tables() const override { return own_.sparse_tables(); }
  SavedTables save(Env& env, const std::string& folder, uint64_t generation) override;
  void load(Env& env, const std::string& folder, std::span<const ps::SavedTable> tables) override;
  TableRows rows(const std::string& table) override;
  size_t shrink(uint32_t unseen) override;

  /// This rank's part of the rows, and the parameters.
  LocalStore& own() { return own_; }

  /// Rank 0 calls begin_alone() and end_alone(); meanwhile the others are in help(), which returns
  /// at end_alone().
  void begin_alone() { is_alone_ = true; }
  void end_alone();
  void help(Env& env);

  /// Rows of a batch for inference, of rank 0 alone while it is helped, else of every rank.
  void infer(Batch& batch);
  /// This rank has no more batches: returns when no other rank has any.
  void end_inference();

 private:
  struct EndAlone {
    template <class A>
    void fields(A&) {}
  };
  struct Infer {
    template <class A>
    void fields(A&) {}
  };
  /// Broadcast by rank 0 to the ranks in help().
  using Order = std::variant<EndAlone, Infer, ps::verbs::ReadRows, ps::verbs::Save, ps::verbs::Load,
                             ps::verbs::Shrink>;

  bool is_first() const { return group_.rank() == 0; }
  void order(const Order& order, std::string_view what);
  /// Saves the rows of this rank; returns the files of all ranks, table by table.
  std::vector<ps::SavedTable> save_part(Env& env, const std::string& folder, uint64_t generation);
  void load_part(Env& env, const std::string& folder, std::span<const ps::SavedTable> tables);
  void send_rows(const std::string& table);
  size_t shrink_part(uint32_t unseen);

  comm::Group& group_;
  LocalStore& own_;
  ShardedRows& rows_;
  bool is_alone_ = false;
};

}  // namespace argosy

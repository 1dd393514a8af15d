#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "argosy/fleet/plan.h"
#include "argosy/fleet/states.h"
#include "argosy/fleet/table_store.h"
#include "argosy/ps/dense_table.h"
#include "argosy/ps/sparse_table.h"

namespace argosy {

/// The tables of a plan in this process. persistables() gives live memory, so that restore() has
/// nothing to do.
class LocalStore final : public TableStore {
 public:
  LocalStore(const Plan& plan, const WorkerStates& states);

  std::vector<NamedTensor> persistables() override;
  void restore(const std::vector<NamedTensor>&) override {}
  std::vector<std::string> sparse_tables() const override;
  SavedTables save(Env& env, const std::string& folder, uint64_t generation) override;
  void load(Env& env, const std::string& folder, std::span<const SavedTable> tables) override;
  TableRows rows(const std::string& table) override;
  size_t shrink(uint32_t unseen) override;

  /// save() with files named after their tables and `ending`.
  std::vector<SavedTable> save_tables(Env& env, const std::string& folder,
                                      const std::string& ending);
  /// load() of the keys that `keep` wants; one file at a time is in memory.
  void load_tables(Env& env, const std::string& folder, std::span<const SavedTable> tables,
                   FunctionRef<bool(Key)> keep);

  /// By table of the plan; null where it is of the other kind.
  DenseTable* dense(size_t table) { return dense_[table].get(); }
  SparseTable* sparse(size_t table) { return sparse_[table].get(); }
  /// Over a dense table's memory.
  const Tensor& parameter(size_t table) const { return parameters_[table]; }
  const WorkerStates& states() const { return states_; }
  std::atomic<uint64_t> step = 0;
  /// How often rows were loaded.
  uint64_t loads() const { return loads_; }

 private:
  const Plan& plan_;
  const WorkerStates& states_;
  std::vector<std::unique_ptr<DenseTable>> dense_;
  std::vector<std::unique_ptr<SparseTable>> sparse_;
  std::vector<Tensor> parameters_;
  uint64_t loads_ = 0;
};

}  // namespace argosy

#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "argosy/modes/states.h"
#include "argosy/modes/table_store.h"
#include "argosy/plan/plan.h"
#include "argosy/ps/parameter.h"
#include "argosy/ps/row_table.h"

namespace argosy {

/// Parameters and tables of a plan in this process. persistables() returns live memory, so
/// restore() has nothing to do.
class LocalStore final : public TableStore {
 public:
  LocalStore(const Plan& plan, const WorkerStates& states, const ps::TableHome& home);

  std::vector<NamedTensor> persistables() override;
  void restore(const std::vector<NamedTensor>&) override {}
  std::vector<std::string> sparse_tables() const override;
  SavedTables save(Env& env, const std::string& folder, uint64_t generation) override;
  void load(Env& env, const std::string& folder, std::span<const ps::SavedTable> tables) override;
  TableRows rows(const std::string& table) override;
  size_t shrink(uint32_t unseen) override;

  /// save() with files named after their tables and `ending`.
  std::vector<ps::SavedTable> save_tables(Env& env, const std::string& folder,
                                          const std::string& ending);
  /// load(), for the keys that `keep` accepts.
  void load_tables(Env& env, const std::string& folder, std::span<const ps::SavedTable> tables,
                   FunctionRef<bool(Key)> keep);

  /// In the order of the plan.
  std::deque<ps::Parameter>& parameters() { return parameters_; }
  ps::Parameter& parameter(size_t number) { return parameters_[number]; }
  size_t tables() const { return tables_.size(); }
  ps::RowTable& table(size_t number) { return *tables_[number]; }
  /// Over a parameter's memory.
  const Tensor& parameter_tensor(size_t number) const { return tensors_[number]; }
  const WorkerStates& states() const { return states_; }
  std::atomic<uint64_t> step = 0;
  /// How many times rows have been loaded.
  uint64_t loads() const { return loads_; }

 private:
  const WorkerStates& states_;
  std::deque<ps::Parameter> parameters_;
  std::vector<std::unique_ptr<ps::RowTable>> tables_;
  std::vector<Tensor> tensors_;  // by parameter
  uint64_t loads_ = 0;
};

}  // namespace argosy

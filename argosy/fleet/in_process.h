#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argosy/fleet/communicator.h"
#include "argosy/fleet/local_store.h"
#include "argosy/fleet/states.h"

namespace argosy {

/// What the modes share whose tables live in this process. One thread computes on the parameters
/// themselves; of several, each takes a copy, as others may update them meanwhile.
class InProcess : public Communicator {
 public:
  void prepare(Batch&) override {}
  void fetch(Batch& batch, Purpose purpose) override;
  void drain() override {}
  TableStore& store() override { return store_; }
  std::vector<std::string> notes() override { return {}; }

 protected:
  explicit InProcess(const Plan& plan, int lookahead = 0);

  const Plan& plan() const { return plan_; }
  LocalStore& tables() { return store_; }
  WorkerStates& states() { return states_; }
  /// Puts the rows of the batch's keys into its feeds.
  virtual void fetch_rows(Batch& batch, Purpose purpose);
  void set_shared(bool shared);
  /// By table: where the rows of the batch's keys are, so that commit need not search again.
  static std::vector<SparseTable::Located>& found_rows(const Batch& batch);

 private:
  void fetch_table(const Batch& batch, size_t table, Purpose purpose, Tensor& feed);
  void fetch_copy(size_t table, Tensor& feed);

  const Plan& plan_;
  bool shared_ = false;  // by several threads
  WorkerStates states_;
  LocalStore store_;
};

}  // namespace argosy

#pragma once

#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/data/batch.h"
#include "argosy/fleet/plan.h"
#include "argosy/fleet/table_store.h"

namespace argosy {

/// The states of a model (running means and the like), which live in the process that computes.
/// Thread safety: full.
class WorkerStates {
 public:
  explicit WorkerStates(const Plan& plan);

  /// By several threads: each computes on a copy, as others may change them meanwhile.
  void set_shared(bool shared) { shared_ = shared; }

  void fetch(Batch& batch);
  static void deliver(Batch& batch, const Edge& edge, const Tensor& value) {
    batch.next_states[edge.target] = value;
  }
  void commit(Batch& batch);
  /// Over live memory.
  std::vector<NamedTensor> tensors() const;

 private:
  const Plan& plan_;
  bool shared_ = false;
  Mutex mutex_;  // guards the content of states_
  std::vector<Tensor> states_;
};

}  // namespace argosy

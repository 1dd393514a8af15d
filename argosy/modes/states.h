#pragma once

#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/data/batch.h"
#include "argosy/modes/table_store.h"
#include "argosy/plan/plan.h"

namespace argosy {

/// The states of a model (running means and the like), which live in the process that computes.
/// Thread safety: full.
class WorkerStates {
 public:
  explicit WorkerStates(const Plan& plan);

  /// True if several threads compute: each gets a copy, as others may change them meanwhile.
  void set_shared(bool shared) { shared_ = shared; }

  void fetch(Batch& batch);
  void commit(Batch& batch);
  /// Live memory, not copies.
  std::vector<NamedTensor> tensors() const;
  /// As they are now.
  std::vector<NamedTensor> copies() const;

 private:
  const Plan& plan_;
  bool shared_ = false;
  mutable Mutex mutex_;  // guards the content of states_
  std::vector<Tensor> states_;
};

}  // namespace argosy

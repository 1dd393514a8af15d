#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "argosy/data/batch.h"
#include "argosy/graph/executor.h"
#include "argosy/plan/plan.h"
#include "argosy/tensor/finite.h"

namespace argosy {

/// Checks the loss, gradients and next states of each step before they leave for other processes.
/// That costs one pass over them; only after a failure the batch is computed again, node by node,
/// to find the first bad value. Thread safety: full.
class FiniteCheck {
 public:
  /// The plan outlives this. No loss: the model is only evaluated.
  FiniteCheck(const Plan& plan, VarId loss, CheckNan policy);

  /// A variable of the plan's program, as computed from batch.feeds with this seed. Throws
  /// DataError, or says it on stderr: step, variable, and the first node that gave such a value.
  void look(const Batch& batch, VarId id, const Tensor& value, const RunSeed& seed) {
    if (looks_at_[id.index()] && !(id == loss_ ? in_range(value) : all_finite(value))) [[unlikely]]
      report(batch, id, value, seed);
  }

 private:
  /// Finite, and below 2^64: the square of a larger loss is infinite, and so is what optimizers
  /// make of its gradients. A model that saturates can stay there for ever without a NaN.
  static bool in_range(const Tensor& loss);
  void report(const Batch& batch, VarId id, const Tensor& value, const RunSeed& seed);
  std::string role_of(VarId id) const;
  std::string first_of(const Batch& batch, const RunSeed& seed) const;

  const Plan& plan_;
  const VarId loss_;
  const CheckNan policy_;
  std::vector<bool> looks_at_;           // by variable
  std::atomic<uint64_t> told_step_ = 0;  // each step is reported once
  std::atomic<uint64_t> steps_ = 0;      // that were told of, or passed over in silence
};

}  // namespace argosy

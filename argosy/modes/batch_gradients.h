#pragma once

#include <span>
#include <vector>

#include "argosy/data/batch.h"
#include "argosy/modes/clip.h"
#include "argosy/plan/plan.h"

namespace argosy {

/// Marks all gradients of the batch as missing.
void clear_gradients(const Plan& plan, Batch& batch);
/// Sets a gradient, which the batch only refers to, or a state's next value.
void put_value(Batch& batch, const Edge& edge, const Tensor& value);
/// Throws Error naming a parameter or table without a gradient, unless the batch is empty.
void check_gradients(const Plan& plan, const Batch& batch);

/// Clips all gradients of a batch as the plan says. A global norm is summed in the order of the
/// plan's edges. The plan must outlive it. Thread safety: none.
class BatchClip {
 public:
  explicit BatchClip(const Plan& plan) : plan_(plan), clip_(plan.clip) {}
  /// As NormClip::apply.
  void apply(Batch& batch);

 private:
  const Plan& plan_;
  NormClip clip_;
  std::vector<std::span<const float>> all_;
};

}  // namespace argosy

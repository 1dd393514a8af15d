#include "argosy/modes/batch_gradients.h"

#include "argosy/base/error.h"

namespace argosy {
namespace {

/// Storage for the gradient of a parameter or table edge.
std::span<const float>& gradient_of(Batch& batch, const Edge& edge) {
  return edge.kind == VarKind::rows ? batch.row_grads[edge.target] : batch.grads[edge.target];
}

}  // namespace

void clear_gradients(const Plan& plan, Batch& batch) {
  batch.grads.assign(plan.parameters.size(), {});
  batch.row_grads.assign(plan.tables.size(), {});
}

void put_value(Batch& batch, const Edge& edge, const Tensor& value) {
  if (edge.kind == VarKind::state)
    batch.next_states[edge.target] = value;
  else
    gradient_of(batch, edge) = value.as<float>();
}

void check_gradients(const Plan& plan, const Batch& batch) {
  const auto is_there = [&](std::span<const float> grad) {
    return grad.data() != nullptr || batch.size == 0;
  };
  for (size_t i = 0; i < plan.parameters.size(); ++i)
    check<Error>(is_there(batch.grads[i]), "no gradient was delivered for '",
                 plan.parameters[i].name, "'");
  for (size_t i = 0; i < plan.tables.size(); ++i)
    check<Error>(is_there(batch.row_grads[i]), "no gradient was delivered for '",
                 plan.tables[i].name, "'");
}

void BatchClip::apply(Batch& batch) {
  if (plan_.clip.empty()) return;
  all_.clear();
  for (const Edge& edge : plan_.edges)
    if (edge.kind != VarKind::state) all_.push_back(gradient_of(batch, edge));
  clip_.apply(all_);
  size_t next = 0;
  for (const Edge& edge : plan_.edges)
    if (edge.kind != VarKind::state) gradient_of(batch, edge) = all_[next++];
}

}  // namespace argosy

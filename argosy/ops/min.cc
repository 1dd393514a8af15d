// min(x) {axes=[...], keepdim=1}: the smallest element over some axes, or over all as [1]. Its
// gradient goes to the first of equal ones.
#include "argosy/ops/max_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  run_extreme(c, std::numeric_limits<double>::infinity(), [](auto a, auto b) { return a < b; });
}

}  // namespace

std::vector<OpDef> min() {
  return {{.name = "min",
           .infer = infer_reduction,
           .run = run,
           .grad = grad_extreme,
           .examples = examples_extreme}};
}

}  // namespace argosy::ops

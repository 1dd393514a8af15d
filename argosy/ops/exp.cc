// exp(x): the exponential, element by element.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  map(c, [](auto x) { return math::exp(x); });
}

std::vector<Var> grad(const GradCtx& c) { return {c.g.apply("mul", {c.dout[0], c.out[0]})}; }

std::vector<OpExample> examples() { return {{.in = {random_tensor({3, 4}, -3.0, 3.0)}}}; }

}  // namespace

std::vector<OpDef> exp() {
  return {{.name = "exp",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

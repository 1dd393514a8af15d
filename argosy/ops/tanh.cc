// tanh(x): the hyperbolic tangent, element by element.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  map(c, [](auto x) { return math::tanh(x); });
}

void run_grad(const RunCtx& c) {  // (y, dy) -> dx
  map2(c, [](auto y, auto dy) { return dy * (1 - y * y); });
}

std::vector<Var> grad(const GradCtx& c) { return {c.g.apply("tanh_grad", {c.out[0], c.dout[0]})}; }

std::vector<OpExample> examples() { return {{.in = {random_tensor({3, 4}, -3.0, 3.0)}}}; }

}  // namespace

std::vector<OpDef> tanh() {
  return {{.name = "tanh",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "tanh_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

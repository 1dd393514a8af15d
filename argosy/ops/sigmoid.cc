// sigmoid(x): 1 / (1 + exp(-x)), element by element.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  map(c, [](auto x) { return math::sigmoid(x); });
}

void run_grad(const RunCtx& c) {  // (y, dy) -> dx
  map2(c, [](auto y, auto dy) { return dy * y * (1 - y); });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("sigmoid_grad", {c.out[0], c.dout[0]})};
}

std::vector<OpExample> examples() { return {{.in = {random_tensor({3, 4}, -3.0, 3.0)}}}; }

}  // namespace

std::vector<OpDef> sigmoid() {
  return {{.name = "sigmoid",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "sigmoid_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

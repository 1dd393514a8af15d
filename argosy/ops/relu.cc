// relu(x) = max(x, 0), element by element.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  map(c, [](auto x) { return x > 0 ? x : 0; });
}

void run_grad(const RunCtx& c) {  // (y, dy) -> dx
  map2(c, [](auto y, auto dy) { return y > 0 ? dy : 0; });
}

std::vector<Var> grad(const GradCtx& c) { return {c.g.apply("relu_grad", {c.out[0], c.dout[0]})}; }

std::vector<OpExample> examples() { return {{.in = {spread_tensor({3, 4})}}}; }

}  // namespace

std::vector<OpDef> relu() {
  return {{.name = "relu",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "relu_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

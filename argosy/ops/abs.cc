// abs(x): the absolute value, element by element; its gradient at 0 is 0.
#include <cmath>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  map(c, [](auto x) { return std::abs(x); });
}

void run_grad(const RunCtx& c) {  // (x, dy) -> dx
  map2(c, [](auto x, auto dy) { return x > 0 ? dy : (x < 0 ? -dy : decltype(dy){0}); });
}

std::vector<Var> grad(const GradCtx& c) { return {c.g.apply("abs_grad", {c.in[0], c.dout[0]})}; }

std::vector<OpExample> examples() { return {{.in = {spread_tensor({3, 4})}}}; }

}  // namespace

std::vector<OpDef> abs() {
  return {{.name = "abs",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "abs_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

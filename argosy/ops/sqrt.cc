// sqrt(x): the square root, element by element.
#include <cmath>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  map(c, [](auto x) { return std::sqrt(x); });
}

void run_grad(const RunCtx& c) {  // (y, dy) -> dx
  map2(c, [](auto y, auto dy) { return dy / (2 * y); });
}

std::vector<Var> grad(const GradCtx& c) { return {c.g.apply("sqrt_grad", {c.out[0], c.dout[0]})}; }

std::vector<OpExample> examples() { return {{.in = {random_tensor({3, 4}, 0.5, 2.0)}}}; }

}  // namespace

std::vector<OpDef> sqrt() {
  return {{.name = "sqrt",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "sqrt_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

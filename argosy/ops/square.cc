// square(x) = x * x, element by element.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  map(c, [](auto x) { return x * x; });
}

void run_grad(const RunCtx& c) {  // (x, dy) -> dx
  map2(c, [](auto x, auto dy) { return 2 * x * dy; });
}

std::vector<Var> grad(const GradCtx& c) { return {c.g.apply("square_grad", {c.in[0], c.dout[0]})}; }

std::vector<OpExample> examples() { return {{.in = {random_tensor({3, 4})}}}; }

}  // namespace

std::vector<OpDef> square() {
  return {{.name = "square",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "square_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

// erf(x): the error function, element by element.
#include <cmath>
#include <numbers>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  map(c, [](auto x) { return std::erf(x); });
}

void run_grad(const RunCtx& c) {  // (x, dy) -> dx
  map2(c, [](auto x, auto dy) {
    using T = decltype(x);
    return dy * static_cast<T>(2 * std::numbers::inv_sqrtpi) * math::exp(-x * x);
  });
}

std::vector<Var> grad(const GradCtx& c) { return {c.g.apply("erf_grad", {c.in[0], c.dout[0]})}; }

std::vector<OpExample> examples() { return {{.in = {random_tensor({3, 4}, -2.0, 2.0)}}}; }

}  // namespace

std::vector<OpDef> erf() {
  return {{.name = "erf",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "erf_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

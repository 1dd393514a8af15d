// power(a, b) = a to the power of b, element by element with broadcasting; a is positive where a
// gradient of b is asked for.
#include <cmath>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    zip<T, T>(c.in(0), c.in(1), c.out(0), [](T a, T b) { return std::pow(a, b); });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  Var da, db;
  if (c.needs[0]) {
    const Var less = c.g.apply("scale", {c.in[1]}, {{"bias", -1.0}});
    const Var slope = c.g.apply("mul", {c.in[1], c.g.apply("power", {c.in[0], less})});
    da = sum_to(c.g.apply("mul", {c.dout[0], slope}), c.in[0]);
  }
  if (c.needs[1]) {
    const Var slope = c.g.apply("mul", {c.out[0], c.g.apply("log", {c.in[0]})});
    db = sum_to(c.g.apply("mul", {c.dout[0], slope}), c.in[1]);
  }
  return {da, db};
}

std::vector<OpExample> examples() {
  const std::vector<std::vector<VarType>> refused = {{{{3, 4}, DType::f64}, {{3, 5}, DType::f64}},
                                                     {{{3, 4}, DType::f64}, {{3, 4}, DType::f32}}};
  return {{.in = {random_tensor({3, 4}, 0.5, 2.0), random_tensor({3, 4}, -2.0, 2.0, 2)},
           .batched = {0, 1},
           .refused = refused},
          {.in = {random_tensor({3, 4}, 0.5, 2.0), random_tensor({4}, 2)}},
          {.in = {random_tensor({1}, 0.5, 2.0), random_tensor({3, 4}, 2)}, .batched = {1}}};
}

}  // namespace

std::vector<OpDef> power() {
  return {{.name = "power",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = broadcast_all,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

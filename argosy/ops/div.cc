// div(a, b) = a / b, element by element with broadcasting.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    zip<T, T>(c.in(0), c.in(1), c.out(0), [](T a, T b) { return a / b; });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  const Var by_b = c.g.apply("div", {c.dout[0], c.in[1]});
  Var da, db;
  if (c.needs[0]) da = sum_to(by_b, c.in[0]);
  if (c.needs[1]) {
    const Var total = sum_to(c.g.apply("mul", {by_b, c.out[0]}), c.in[1]);
    db = c.g.apply("scale", {total}, {{"scale", -1.0}});
  }
  return {da, db};
}

std::vector<OpExample> examples() {
  const std::vector<std::vector<VarType>> refused = {{{{3, 4}, DType::f64}, {{3, 5}, DType::f64}},
                                                     {{{3, 4}, DType::f64}, {{3, 4}, DType::f32}}};
  return {{.in = {random_tensor({3, 4}), random_tensor({3, 4}, 0.5, 2.0, 2)},
           .batched = {0, 1},
           .refused = refused},
          {.in = {random_tensor({3, 4}), random_tensor({4}, 0.5, 2.0, 2)}},
          {.in = {random_tensor({3, 1}), random_tensor({3, 4}, -2.0, -0.5, 2)}, .batched = {0, 1}}};
}

}  // namespace

std::vector<OpDef> div() {
  return {{.name = "div",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = broadcast_all,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

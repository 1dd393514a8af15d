// sub(a, b) = a - b with broadcasting.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  by_number(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    zip<T, T>(c.in(0), c.in(1), c.out(0), [](T a, T b) { return a - b; });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  const auto negated = [&](Var x) { return c.g.apply("scale", {x}, {{"scale", -1.0}}); };
  return {c.needs[0] ? sum_to(c.dout[0], c.in[0]) : Var{},
          c.needs[1] ? negated(sum_to(c.dout[0], c.in[1])) : Var{}};
}

std::vector<OpExample> examples() {
  const std::vector<std::vector<VarType>> refused = {{{{3, 4}, DType::f64}, {{3, 5}, DType::f64}},
                                                     {{{3, 4}, DType::f64}, {{3, 4}, DType::f32}}};
  return {{.in = {random_tensor({3, 4}), random_tensor({3, 4}, 2)},
           .batched = {0, 1},
           .refused = refused},
          {.in = {integers({3, 2}, {1, -2, 3, -4, 5, 6}), integers({2}, {3, 4})}},
          {.in = {random_tensor({3, 4}), random_tensor({4}, 2)}},
          {.in = {random_tensor({3, 1}), random_tensor({3, 4}, 2)}, .batched = {0, 1}}};
}

}  // namespace

std::vector<OpDef> sub() {
  return {{.name = "sub",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = broadcast_numbers,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

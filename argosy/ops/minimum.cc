// minimum(a, b): the smaller of a and b, element by element with broadcasting. A tie's gradient
// goes to a alone; NaN in either is kept.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  by_number(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    zip<T, T>(c.in(0), c.in(1), c.out(0), [](T a, T b) { return a > b || b != b ? b : a; });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  const Var b_wins = c.g.apply("greater", {c.in[0], c.in[1]});
  const auto part = [&](size_t input, int64_t when) {
    if (!c.needs[input]) return Var{};
    const Var d = c.g.apply("keep_where", {b_wins, c.dout[0]}, {{"when", when}});
    return sum_to(d, c.in[input]);
  };
  return {part(0, 0), part(1, 1)};
}

/// Values midway between those of a spread_tensor, so that the two never tie.
Tensor between(const Shape& shape, uint64_t seed) {
  Tensor tensor = spread_tensor(shape, seed);
  for (double& value : tensor.as<double>()) value += 0.025;
  return tensor;
}

std::vector<OpExample> examples() {
  const std::vector<std::vector<VarType>> refused = {{{{3, 4}, DType::f64}, {{3, 5}, DType::f64}},
                                                     {{{3, 4}, DType::f64}, {{3, 4}, DType::f32}}};
  return {
      {.in = {spread_tensor({3, 4}), between({3, 4}, 2)}, .batched = {0, 1}, .refused = refused},
      {.in = {spread_tensor({3, 4}), between({4}, 2)}},
      {.in = {integers({3, 2}, {1, -2, 3, -4, 5, 6}), integers({2}, {3, 4})}},
      {.in = {spread_tensor({3, 1}), between({3, 4}, 2)}, .batched = {0, 1}}};
}

}  // namespace

std::vector<OpDef> minimum() {
  return {{.name = "minimum",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = broadcast_numbers,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

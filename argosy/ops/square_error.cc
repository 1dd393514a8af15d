// square_error(x, y) = (x - y)^2, element by element.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  map2(c, [](auto x, auto y) { return (x - y) * (x - y); });
}

void run_grad(const RunCtx& c) {  // (x, y, d) -> dx
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *x = c.in(0).as<T>().data(), *y = c.in(1).as<T>().data(), *d = c.in(2).as<T>().data();
    T* dx = c.out(0).as<T>().data();
    const auto n = static_cast<size_t>(c.out(0).numel());
    vectorized([=] {
      for (size_t i = 0; i < n; ++i) dx[i] = 2 * (x[i] - y[i]) * d[i];
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  const Var x = c.in[0], y = c.in[1], d = c.dout[0];
  return {c.needs[0] ? c.g.apply("square_error_grad", {x, y, d}) : Var{},
          c.needs[1] ? c.g.apply("square_error_grad", {y, x, d}) : Var{}};
}

std::vector<OpExample> examples() {
  return {{.in = {random_tensor({3, 4}), random_tensor({3, 4}, 2)},
           .batched = {0, 1},
           .refused = {{{{3, 4}, DType::f64}, {{3, 1}, DType::f64}}}}};
}

}  // namespace

std::vector<OpDef> square_error() {
  return {{.name = "square_error",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "square_error_grad",
           .inputs = 3,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

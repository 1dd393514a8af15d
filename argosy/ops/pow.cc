// pow(x) {factor=1.0}: x to the power of factor, element by element.
#include <cmath>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

/// f(power, x) where power(x) is x^factor: the common ones in arithmetic that vectorises.
template <class Run>
void with_power(double factor, Run run) {
  if (factor == 0) return run([](auto x) { return decltype(x){1}; });
  if (factor == 1) return run([](auto x) { return x; });
  if (factor == 2) return run([](auto x) { return x * x; });
  if (factor == -1) return run([](auto x) { return 1 / x; });
  if (factor == 0.5) return run([](auto x) { return std::sqrt(x); });
  if (factor == -0.5) return run([](auto x) { return 1 / std::sqrt(x); });
  run([factor](auto x) { return std::pow(x, static_cast<decltype(x)>(factor)); });
}

void run(const RunCtx& c) {
  with_power(c.attrs.real("factor", 1.0), [&](auto power) { map(c, power); });
}

void run_grad(const RunCtx& c) {  // (x, dy) -> dx
  const double factor = c.attrs.real("factor", 1.0);
  // A constant has no gradient, also at 0, where the formula says 0 * infinity.
  if (factor == 0) return map2(c, [](auto, auto dy) { return decltype(dy){0}; });
  with_power(factor - 1, [&](auto power) {
    map2(c, [=](auto x, auto dy) { return static_cast<decltype(x)>(factor) * power(x) * dy; });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("pow_grad", {c.in[0], c.dout[0]}, c.attrs)};
}

std::vector<OpExample> examples() {
  const auto positive = [](double factor) {
    return OpExample{.in = {random_tensor({3, 4}, 0.5, 2.0)}, .attrs = {{"factor", factor}}};
  };
  return {positive(2.5),  positive(0.5),
          positive(-1.0), positive(-0.5),
          positive(1.0),  {.in = {random_tensor({3, 4})}, .attrs = {{"factor", 3.0}}}};
}

}  // namespace

std::vector<OpDef> pow() {
  return {{.name = "pow",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "pow_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

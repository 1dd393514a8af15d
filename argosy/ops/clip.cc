// clip(x) {min, max}: x held inside [min, max]; an absent bound is none. The gradient passes inside
// the closed interval.
#include <limits>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double low_of(const Attrs& attrs) { return attrs.real("min", -kInfinity); }
double high_of(const Attrs& attrs) { return attrs.real("max", kInfinity); }

void infer(const InferCtx& c) {
  same_float(c);
  const double low = low_of(c.attrs), high = high_of(c.attrs);
  check<ConfigError>(low <= high, "min must not exceed max, got ", low, " and ", high);
}

void run(const RunCtx& c) {
  const double low = low_of(c.attrs), high = high_of(c.attrs);
  map(c, [=](auto x) {
    const auto a = static_cast<decltype(x)>(low), b = static_cast<decltype(x)>(high);
    return x < a ? a : (x > b ? b : x);
  });
}

void run_grad(const RunCtx& c) {  // (x, dy) -> dx
  const double low = low_of(c.attrs), high = high_of(c.attrs);
  map2(c, [=](auto x, auto dy) {
    using T = decltype(x);
    const auto a = static_cast<T>(low), b = static_cast<T>(high);
    return x < a ? T{0} : (x > b ? T{0} : dy);
  });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("clip_grad", {c.in[0], c.dout[0]}, c.attrs)};
}

std::vector<OpExample> examples() {
  const Tensor x = spread_tensor({3, 4});
  return {{.in = {x}, .attrs = {{"min", -0.2}, {"max", 0.3}}, .refused = {{{{3, 4}, DType::i64}}}},
          {.in = {x}, .attrs = {{"max", 0.0}}}};
}

}  // namespace

std::vector<OpDef> clip() {
  return {{.name = "clip",
           .trait = OpTrait::elementwise,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "clip_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

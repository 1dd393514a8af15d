// scale(x) {scale=1.0, bias=0.0, bias_after_scale=1}: scale * x + bias, or scale * (x + bias).
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  const double scale = c.attrs.real("scale", 1.0), bias = c.attrs.real("bias", 0.0);
  const bool bias_last = c.attrs.integer("bias_after_scale", 1) != 0;
  if (bias == 0) return map(c, [=](auto x) { return static_cast<decltype(x)>(scale) * x; });
  map(c, [=](auto x) {
    using T = decltype(x);
    const T s = static_cast<T>(scale), b = static_cast<T>(bias);
    return bias_last ? s * x + b : s * (x + b);
  });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("scale", {c.dout[0]}, {{"scale", c.attrs.real("scale", 1.0)}})};
}

std::vector<OpExample> examples() {
  const Tensor x = random_tensor({3, 4});
  return {
      {.in = {x}, .attrs = {{"scale", -2.5}, {"bias", 0.5}}, .refused = {{{{3, 4}, DType::i64}}}},
      {.in = {x}, .attrs = {{"scale", 3.0}, {"bias", 0.5}, {"bias_after_scale", int64_t{0}}}},
      {.in = {x}}};
}

}  // namespace

std::vector<OpDef> scale() {
  return {{.name = "scale",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

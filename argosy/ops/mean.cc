// mean(x) {axes=[...], keepdim=1}: the mean over some axes, or over all as [1].
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto y = c.out(0).as<T>();
    std::ranges::fill(y, T{0});
    sum_into(c.in(0), kept_shape(c.in(0).shape(), c.attrs), y);
    // The mean of nothing is 0: an empty batch adds nothing to a loss.
    const int64_t reduced =
        y.empty() ? 1 : std::max<int64_t>(c.in(0).numel() / c.out(0).numel(), 1);
    const T count = static_cast<T>(reduced);
    for (T& value : y) value /= count;
  });
}

std::vector<Var> grad(const GradCtx& c) {
  Attrs attrs = c.attrs;
  attrs.set("mean", int64_t{1});
  return {c.g.apply("spread", {c.dout[0], c.in[0]}, attrs)};
}

std::vector<OpExample> examples() {
  const Tensor x = random_tensor({3, 4, 2});
  return {
      {.in = {x}},
      {.in = {x}, .attrs = {{"axes", std::vector<int64_t>{1}}}, .refused = {{{{3}, DType::f64}}}},
      {.in = {x}, .attrs = {{"axes", std::vector<int64_t>{0, 2}}, {"keepdim", int64_t{1}}}},
      {.in = {x}, .attrs = {{"axes", std::vector<int64_t>{-1}}}}};
}

}  // namespace

std::vector<OpDef> mean() {
  return {
      {.name = "mean", .infer = infer_reduction, .run = run, .grad = grad, .examples = examples}};
}

}  // namespace argosy::ops

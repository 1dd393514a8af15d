// sum(x) {axes=[...], keepdim=1}: the sum over some axes, or over all as [1].
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  expect_number(c, 0);
  c.out = {{reduced_shape(c.in[0].shape, c.attrs), c.in[0].dtype}};
}

void run(const RunCtx& c) {
  by_number(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto y = c.out(0).as<T>();
    std::ranges::fill(y, T{0});
    sum_into(c.in(0), kept_shape(c.in(0).shape(), c.attrs), y);
  });
}

std::vector<Var> grad(const GradCtx& c) {
  Attrs attrs = c.attrs;
  return {c.g.apply("spread", {c.dout[0], c.in[0]}, attrs)};
}

std::vector<OpExample> examples() {
  const Tensor x = random_tensor({3, 4, 2});
  return {
      {.in = {x}},
      {.in = {x}, .attrs = {{"axes", std::vector<int64_t>{1}}}, .refused = {{{{3}, DType::f64}}}},
      {.in = {x}, .attrs = {{"axes", std::vector<int64_t>{0, 2}}, {"keepdim", int64_t{1}}}},
      {.in = {x}, .attrs = {{"axes", std::vector<int64_t>{-1}}}},
      {.in = {integers({3, 2}, {1, 2, 3, 4, 5, 6})}, .attrs = {{"axes", std::vector<int64_t>{1}}}}};
}

}  // namespace

std::vector<OpDef> sum() {
  return {{.name = "sum", .infer = infer, .run = run, .grad = grad, .examples = examples}};
}

}  // namespace argosy::ops

// cumsum(x) {axis=-1, reverse=0}: the sum of the elements so far along an axis; with reverse=1 from
// the end.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  expect_number(c, 0);
  c.in[0].shape.axis(c.attrs.integer("axis", -1));
  c.out = {c.in[0]};
}

void run(const RunCtx& c) {
  const Shape& shape = c.in(0).shape();
  const AxisSpan span(shape, shape.axis(c.attrs.integer("axis", -1)));
  const bool reverse = c.attrs.integer("reverse") != 0;
  by_number(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in(0).as<T>().data();
    T* y = c.out(0).as<T>().data();
    for (size_t row = 0; row < span.outer; ++row) {
      for (size_t i = 0; i < span.length; ++i) {
        const size_t step = reverse ? span.length - 1 - i : i;
        const size_t at = (row * span.length + step) * span.inner;
        const size_t before = reverse ? at + span.inner : at - span.inner;
        for (size_t k = 0; k < span.inner; ++k)
          y[at + k] = i == 0 ? x[at + k] : y[before + k] + x[at + k];
      }
    }
  });
}

std::vector<Var> grad(const GradCtx& c) {
  Attrs back = c.attrs;
  back.set("reverse", int64_t{c.attrs.integer("reverse") == 0});
  return {c.g.apply("cumsum", {c.dout[0]}, back)};
}

std::vector<OpExample> examples() {
  const Tensor x = random_tensor({3, 4, 2});
  return {{.in = {x}, .attrs = {{"axis", int64_t{1}}}, .refused = {{{{3}, DType::f64}}}},
          {.in = {x}},
          {.in = {x}, .attrs = {{"axis", int64_t{0}}, {"reverse", int64_t{1}}}, .batched = {}},
          {.in = {integers({2, 3}, {1, 2, 3, 4, 5, 6})}}};
}

}  // namespace

std::vector<OpDef> cumsum() {
  return {{.name = "cumsum", .infer = infer, .run = run, .grad = grad, .examples = examples}};
}

}  // namespace argosy::ops

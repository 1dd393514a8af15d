// gather(x, index) {axis=0}: the slices of x along an axis that the index names. The index may
// have any shape, which takes the place of the axis. An index is 0 or more, never from the end.
#include <cstring>

#include "argosy/ops/index_support.h"

namespace argosy::ops {
namespace {

Shape gathered_shape(const InferCtx& c) {
  expect_integer(c, 1);
  const Shape& x = c.in[0].shape;
  const int axis = x.axis(c.attrs.integer("axis"));
  Shape out;
  for (int i = 0; i < axis; ++i) out.push_back(x[i]);
  for (int64_t dim : c.in[1].shape) out.push_back(dim);
  for (int i = axis + 1; i < x.rank(); ++i) out.push_back(x[i]);
  return out;
}

void infer(const InferCtx& c) { c.out = {{gathered_shape(c), c.in[0].dtype}}; }

void run(const RunCtx& c) {
  const Tensor& x = c.in(0);
  const AxisSpan span(x.shape(), x.shape().axis(c.attrs.integer("axis")));
  const size_t bytes = span.inner * size_of(x.dtype());
  by_integer(c.in(1).dtype(), [&](auto kind) {
    const auto index = c.in(1).as<decltype(kind)>();
    check_index("gather", index, span.length);
    if (bytes == 0) return;
    std::byte* to = c.out(0).data();
    for (size_t outer = 0; outer < span.outer; ++outer) {
      const std::byte* from = x.data() + outer * span.length * bytes;
      for (const auto at : index) {
        std::memcpy(to, from + static_cast<size_t>(at) * bytes, bytes);
        to += bytes;
      }
    }
  });
}

void infer_grad(const InferCtx& c) {
  expect_float(c, 0);
  const Shape expected = gathered_shape(c);
  check<ConfigError>(fits(c.in[2].shape, expected), "expected a gradient of shape ", expected,
                     ", got ", c.in[2].shape);
  c.out = {c.in[0]};
}

void run_grad(const RunCtx& c) {  // (x, index, dout) -> dx
  const Shape& shape = c.out(0).shape();
  const AxisSpan span(shape, shape.axis(c.attrs.integer("axis")));
  by_float(c.out(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::ranges::fill(c.out(0).as<T>(), zero);
    by_integer(c.in(1).dtype(), [&](auto kind) {
      const auto index = c.in(1).as<decltype(kind)>();
      check_index("gather", index, span.length);
      const T* dout = c.in(2).as<T>().data();
      T* dx = c.out(0).as<T>().data();
      vectorized([=, n = span.inner] {
        const T* from = dout;
        for (size_t outer = 0; outer < span.outer; ++outer) {
          for (size_t k = 0; k < index.size(); ++k, from += n) {
            T* to = dx + (outer * span.length + static_cast<size_t>(index[k])) * n;
            for (size_t i = 0; i < n; ++i) to[i] += from[i];
          }
        }
      });
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("gather_grad", {c.in[0], c.in[1], c.dout[0]}, c.attrs), {}};
}

std::vector<OpExample> examples() {
  const Tensor x = random_tensor({3, 4, 2}), index = integers({5}, {2, 0, 2, 1, 2});
  const std::vector<std::vector<VarType>> refused = {{{{3, 4}, DType::f64}, {{2}, DType::f64}},
                                                     {{{}, DType::f64}, {{2}, DType::i64}}};
  return {{.in = {x, index}, .batched = {1}, .refused = refused},
          {.in = {x, index}, .attrs = {{"axis", 1}}},
          {.in = {x, integers({2, 2}, {1, 0, 1, 1})}, .attrs = {{"axis", -1}}},
          {.in = {integers({3}, {7, 8, 9}), index}, .batched = {1}}};
}

}  // namespace

std::vector<OpDef> gather() {
  return {
      {.name = "gather",
       .inputs = 2,
       .infer = infer,
       .run = run,
       .grad = grad,
       .examples = examples},
      {.name = "gather_grad", .inputs = 3, .shape_of = 0, .infer = infer_grad, .run = run_grad}};
}

}  // namespace argosy::ops

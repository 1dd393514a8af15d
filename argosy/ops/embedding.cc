// embedding(rows [n, dim], index [...]) {padding_idx=k} -> [..., dim]: the row each index names. An
// index equal to padding_idx, which need not be a row, gives zeros and no gradient.
#include <cstring>

#include "argosy/ops/index_support.h"

namespace argosy::ops {
namespace {

Shape looked_up_shape(const InferCtx& c) {
  expect_float(c, 0);
  expect_rank(c, 0, 2);
  expect_integer(c, 1);
  Shape out = c.in[1].shape;
  out.push_back(c.in[0].shape[1]);
  return out;
}

void infer(const InferCtx& c) { c.out = {{looked_up_shape(c), c.in[0].dtype}}; }

void run(const RunCtx& c) {
  const Padding padding(c.attrs);
  const Tensor& rows = c.in(0);
  const size_t bytes = static_cast<size_t>(rows.shape()[1]) * size_of(rows.dtype());
  by_integer(c.in(1).dtype(), [&](auto kind) {
    const auto index = c.in(1).as<decltype(kind)>();
    check_index("embedding", index, static_cast<size_t>(rows.shape()[0]), padding);
    if (bytes == 0) return;
    std::byte* to = c.out(0).data();
    for (size_t k = 0; k < index.size(); ++k, to += bytes) {
      if (padding.covers(index[k])) {
        std::memset(to, 0, bytes);
      } else {
        std::memcpy(to, rows.data() + static_cast<size_t>(index[k]) * bytes, bytes);
      }
    }
  });
}

void infer_grad(const InferCtx& c) {
  const Shape expected = looked_up_shape(c);
  check<ConfigError>(fits(c.in[2].shape, expected), "expected a gradient of shape ", expected,
                     ", got ", c.in[2].shape);
  c.out = {c.in[0]};
}

void run_grad(const RunCtx& c) {  // (rows, index, dout) -> drows
  const Padding padding(c.attrs);
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* dout = c.in(2).as<T>().data();
    T* drows = c.out(0).as<T>().data();
    std::ranges::fill(c.out(0).as<T>(), zero);
    by_integer(c.in(1).dtype(), [&](auto kind) {
      const auto index = c.in(1).as<decltype(kind)>();
      check_index("embedding", index, static_cast<size_t>(c.in(0).shape()[0]), padding);
      vectorized([=, dim = static_cast<size_t>(c.in(0).shape()[1])] {
        for (size_t k = 0; k < index.size(); ++k) {
          if (padding.covers(index[k])) continue;
          const T* from = dout + k * dim;
          T* to = drows + static_cast<size_t>(index[k]) * dim;
          for (size_t i = 0; i < dim; ++i) to[i] += from[i];
        }
      });
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("embedding_grad", {c.in[0], c.in[1], c.dout[0]}, c.attrs), {}};
}

std::vector<OpExample> examples() {
  const Tensor rows = random_tensor({4, 3}), index = integers({3, 2}, {2, 0, 2, 1, 2, 0});
  const std::vector<std::vector<VarType>> refused = {{{{4, 3}, DType::f64}, {{3}, DType::f64}},
                                                     {{{4}, DType::f64}, {{3}, DType::i64}},
                                                     {{{4, 3}, DType::i64}, {{3}, DType::i64}}};
  return {{.in = {rows, index}, .batched = {1}, .refused = refused},
          {.in = {random_tensor({4, 16}), integers({5}, {3, 3, 0, 1, 3})}, .batched = {0, 1}},
          {.in = {rows, index}, .attrs = {{"padding_idx", 2}}, .batched = {1}},
          {.in = {rows, integers({3, 1}, {-1, 0, -1})},
           .attrs = {{"padding_idx", -1}},
           .batched = {1}}};
}

}  // namespace

std::vector<OpDef> embedding() {
  return {
      {.name = "embedding",
       .inputs = 2,
       .infer = infer,
       .run = run,
       .grad = grad,
       .examples = examples},
      {.name = "embedding_grad", .inputs = 3, .shape_of = 0, .infer = infer_grad, .run = run_grad}};
}

}  // namespace argosy::ops

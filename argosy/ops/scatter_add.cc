// scatter_add(x, index, updates): x with updates[i] added to x[index[i]], in order of i. updates
// has the shape of the index followed by one x[k]'s.
#include <cstring>

#include "argosy/ops/index_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  expect_float(c, 0);
  expect_integer(c, 1);
  expect_same_type(c, 0, 2);
  const Shape& x = c.in[0].shape;
  check<ConfigError>(x.rank() >= 1, "x needs an axis to scatter along, got ", c.in[0]);
  Shape expected = c.in[1].shape;
  for (int i = 1; i < x.rank(); ++i) expected.push_back(x[i]);
  check<ConfigError>(fits(c.in[2].shape, expected), "updates must be ", expected, ", got ",
                     c.in[2].shape);
  c.out = {c.in[0]};
}

void run(const RunCtx& c) {
  const AxisSpan span(c.in(0).shape(), 0);
  if (c.in(0).numel() > 0) std::memcpy(c.out(0).data(), c.in(0).data(), c.in(0).bytes());
  by_float(c.out(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    by_integer(c.in(1).dtype(), [&](auto kind) {
      const auto index = c.in(1).as<decltype(kind)>();
      check_index("scatter_add", index, span.length);
      const T* updates = c.in(2).as<T>().data();
      T* out = c.out(0).as<T>().data();
      vectorized([=, n = span.inner] {
        for (size_t k = 0; k < index.size(); ++k) {
          const T* from = updates + k * n;
          T* to = out + static_cast<size_t>(index[k]) * n;
          for (size_t i = 0; i < n; ++i) to[i] += from[i];
        }
      });
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.needs[0] ? c.dout[0] : Var{},
          {},
          c.needs[2] ? c.g.apply("gather", {c.dout[0], c.in[1]}) : Var{}};
}

std::vector<OpExample> examples() {
  const Tensor x = random_tensor({4, 3});
  const std::vector<std::vector<VarType>> refused = {
      {{{4, 3}, DType::f64}, {{5}, DType::i64}, {{5, 2}, DType::f64}},
      {{{4, 3}, DType::f64}, {{5}, DType::i64}, {{4, 3}, DType::f64}},
      {{{4, 3}, DType::f64}, {{5}, DType::f64}, {{5, 3}, DType::f64}}};
  return {
      {.in = {x, integers({5}, {2, 0, 2, 1, 2}), random_tensor({5, 3}, 2)},
       .batched = {1, 2},
       .refused = refused},
      {.in = {x, integers({2, 2}, {3, 0, 1, 1}), random_tensor({2, 2, 3}, 2)}, .batched = {1, 2}},
      {.in = {random_tensor({4}), integers({2}, {3, 3}), random_tensor({2}, 2)},
       .batched = {1, 2}}};
}

}  // namespace

std::vector<OpDef> scatter_add() {
  return {{.name = "scatter_add",
           .inputs = 3,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

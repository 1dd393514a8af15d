// where(cond, a, b): a where cond (b8) is true, b elsewhere; the three broadcast to one shape.
// keep_where(cond, d) {when=1}: d where cond is `when`, 0 elsewhere: the gradient of a choice.
#include <array>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void expect_condition(const InferCtx& c) {
  check<ConfigError>(c.in[0].dtype == DType::b8, "the condition must be b8, got ", c.in[0]);
}

void infer(const InferCtx& c) {
  expect_condition(c);
  expect_same_type(c, 1, 2);
  const Shape shape = broadcast(broadcast(c.in[0].shape, c.in[1].shape), c.in[2].shape);
  c.out = {{shape, c.in[1].dtype}};
}

void infer_keep(const InferCtx& c) {
  expect_condition(c);
  expect_float(c, 1);
  const Shape full = broadcast(c.in[0].shape, c.in[1].shape);
  check<ConfigError>(fits(full, c.in[1].shape), "a condition of ", c.in[0].shape,
                     " does not broadcast to ", c.in[1].shape);
  c.out = {c.in[1]};
}

/// The condition as bytes, 0 or 1: loops over bool do not vectorise.
const uint8_t* bytes_of(const Tensor& cond) {
  return reinterpret_cast<const uint8_t*>(cond.as<bool>().data());
}

/// A choice between values at hand, since a choice of loads does not vectorise either.
template <class T>
T choose(bool cond, T a, T b) {
  return cond ? a : b;
}

/// How far an input moves per step along each axis of the result: 0 where it is repeated.
using Strides = std::array<size_t, Shape::kMaxRank>;

Strides strides_in(const Shape& shape, const Shape& out) {
  Strides strides{};
  size_t stride = 1;
  for (int i = 1; i <= shape.rank(); ++i) {
    strides[static_cast<size_t>(out.rank() - i)] = shape[-i] == 1 ? 0 : stride;
    stride *= static_cast<size_t>(shape[-i]);
  }
  return strides;
}

size_t offset_of_row(size_t row, const Shape& out, const Strides& strides) {
  size_t offset = 0;
  for (int i = out.rank() - 2; i >= 0; --i) {
    const auto dim = static_cast<size_t>(out[i]);
    offset += row % dim * strides[static_cast<size_t>(i)];
    row /= dim;
  }
  return offset;
}

/// y = cond ? a : b by rows along the last axis. Each y is written after the elements at its place
/// were read, so it may lie over an input of its size.
template <class T>
void choose_broadcast(const Tensor& cond_in, const Tensor& a_in, const Tensor& b_in, Tensor& out) {
  const Shape& shape = out.shape();
  const Strides c_strides = strides_in(cond_in.shape(), shape),
                a_strides = strides_in(a_in.shape(), shape),
                b_strides = strides_in(b_in.shape(), shape);
  const auto length = static_cast<size_t>(shape[-1]), last = static_cast<size_t>(shape.rank() - 1);
  const size_t rows = static_cast<size_t>(out.numel()) / length;
  const size_t sc = c_strides[last], sa = a_strides[last], sb = b_strides[last];
  vectorized([&, y = out.as<T>().data()] {
    for (size_t row = 0; row < rows; ++row) {
      const uint8_t* cond = bytes_of(cond_in) + offset_of_row(row, shape, c_strides);
      const T* a = a_in.as<T>().data() + offset_of_row(row, shape, a_strides);
      const T* b = b_in.as<T>().data() + offset_of_row(row, shape, b_strides);
      T* to = y + row * length;
      for (size_t i = 0; i < length; ++i) to[i] = choose(cond[i * sc] != 0, a[i * sa], b[i * sb]);
    }
  });
}

void run(const RunCtx& c) {
  const Tensor &cond_in = c.in(0), &a_in = c.in(1), &b_in = c.in(2);
  const int64_t numel = c.out(0).numel();
  if (numel == 0) return;
  by_type(a_in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (cond_in.numel() != numel || a_in.numel() != numel || b_in.numel() != numel)
      return choose_broadcast<T>(cond_in, a_in, b_in, c.out(0));
    const uint8_t* cond = bytes_of(cond_in);
    const T *a = a_in.as<T>().data(), *b = b_in.as<T>().data();
    vectorized([=, n = static_cast<size_t>(numel), y = c.out(0).as<T>().data()] {
      for (size_t i = 0; i < n; ++i) y[i] = choose(cond[i] != 0, a[i], b[i]);
    });
  });
}

void run_keep(const RunCtx& c) {
  const Tensor &cond_in = c.in(0), &d_in = c.in(1);
  const uint8_t when = c.attrs.integer("when", 1) != 0;
  if (d_in.numel() == 0) return;
  by_float(d_in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const uint8_t* cond = bytes_of(cond_in);
    const T* d = d_in.as<T>().data();
    T* y = c.out(0).as<T>().data();
    if (cond_in.numel() == d_in.numel()) {
      vectorized([=, n = static_cast<size_t>(d_in.numel())] {
        for (size_t i = 0; i < n; ++i) y[i] = choose(cond[i] == when, d[i], T{0});
      });
      return;
    }
    const Broadcast plan(cond_in.shape(), d_in.shape(), d_in.shape());
    vectorized([&plan, cond, d, y, when] {
      for (const BroadcastRow& row : plan.rows)
        for (size_t i = 0; i < plan.length; ++i)
          y[row.out + i] = choose(cond[row.a + i * plan.a_step] == when, d[row.out + i], T{0});
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  const auto part = [&](size_t input, int64_t when) {
    if (!c.needs[input]) return Var{};
    const Var d = c.g.apply("keep_where", {c.in[0], c.dout[0]}, {{"when", when}});
    return sum_to(d, c.in[input]);
  };
  return {{}, part(1, 1), part(2, 0)};
}

std::vector<OpExample> examples() {
  const Tensor cond = Tensor::of<bool>({3, 2}, {true, false, false, true, true, false});
  const Tensor rows = Tensor::of<bool>({3, 1}, {true, false, true});
  return {{.in = {cond, random_tensor({3, 2}), random_tensor({3, 2}, 2)},
           .batched = {0, 1, 2},
           .refused = {{{{3, 2}, DType::f64}, {{3, 2}, DType::f64}, {{3, 2}, DType::f64}},
                       {{{3, 2}, DType::b8}, {{3, 2}, DType::f64}, {{3, 2}, DType::f32}},
                       {{{3, 2}, DType::b8}, {{3, 4}, DType::f64}, {{3, 4}, DType::f64}}}},
          {.in = {rows, random_tensor({3, 4}), random_tensor({4}, 2)}, .batched = {0, 1}},
          {.in = {cond, random_tensor({1}), random_tensor({2, 3, 2}, 2)}, .batched = {2}},
          {.in = {rows, integers({3, 1}, {1, 2, 3}), integers({3, 1}, {4, 5, 6})},
           .batched = {0, 1, 2}}};
}

}  // namespace

std::vector<OpDef> where() {
  return {{.name = "where",
           .inputs = 3,
           .trait = OpTrait::elementwise,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "keep_where",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = infer_keep,
           .run = run_keep}};
}

}  // namespace argosy::ops

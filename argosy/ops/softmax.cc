// softmax(x) {axis=-1}: exp(x) scaled to sum 1 along an axis; the largest x is taken off first, so
// that nothing overflows.
#include "argosy/ops/value_support.h"

namespace argosy::ops {
namespace {

/// Columns that run side by side where the axis is not the last.
constexpr size_t kColumns = 64;

int axis_of(const Shape& shape, const Attrs& attrs) {
  return shape.axis(attrs.integer("axis", -1));
}

void infer(const InferCtx& c) {
  same_float(c);
  axis_of(c.in[0].shape, c.attrs);
}

template <class T>
T larger(T a, T b) {
  return b > a ? b : a;
}

template <class T>
void softmax_row(const T* x, T* y, size_t n) {
  const T most = fold_lanes(
      n, x[0], [=](size_t i) { return x[i]; }, larger<T>);
  for (size_t i = 0; i < n; ++i) y[i] = math::exp(x[i] - most);
  const T inverse = 1 / math::sum(y, n);
  for (size_t i = 0; i < n; ++i) y[i] *= inverse;
}

/// `columns` softmaxes at once, whose elements are `stride` apart.
template <class T>
void softmax_columns(const T* x, T* y, size_t n, size_t stride, size_t columns) {
  T most[kColumns], total[kColumns];
  for (size_t j = 0; j < columns; ++j) most[j] = x[j];
  for (size_t i = 1; i < n; ++i)
    for (size_t j = 0; j < columns; ++j) most[j] = larger(most[j], x[i * stride + j]);
  for (size_t j = 0; j < columns; ++j) total[j] = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      const T e = math::exp(x[i * stride + j] - most[j]);
      y[i * stride + j] = e;
      total[j] += e;
    }
  }
  for (size_t j = 0; j < columns; ++j) total[j] = 1 / total[j];
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < columns; ++j) y[i * stride + j] *= total[j];
}

template <class T>
void grad_row(const T* y, const T* dy, T* dx, size_t n) {
  const T dot = sum_of<T>(n, [=](size_t i) { return y[i] * dy[i]; });
  for (size_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - dot);
}

template <class T>
void grad_columns(const T* y, const T* dy, T* dx, size_t n, size_t stride, size_t columns) {
  T dot[kColumns] = {};
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < columns; ++j) dot[j] += y[i * stride + j] * dy[i * stride + j];
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < columns; ++j)
      dx[i * stride + j] = y[i * stride + j] * (dy[i * stride + j] - dot[j]);
}

/// by_row(start) for each line along the last axis, or by_columns(start, columns) for groups of
/// neighbouring lines along another.
template <class Row, class Columns>
void for_each_line(const AxisSpan& span, Row by_row, Columns by_columns) {
  if (span.length == 0) return;
  vectorized([=] {
    if (span.inner == 1) {
      for (size_t r = 0; r < span.outer; ++r) by_row(r * span.length);
      return;
    }
    for (size_t r = 0; r < span.outer; ++r)
      for (size_t j = 0; j < span.inner; j += kColumns)
        by_columns(r * span.length * span.inner + j, std::min(kColumns, span.inner - j));
  });
}

void run(const RunCtx& c) {
  const Shape& shape = c.in(0).shape();
  const AxisSpan span(shape, axis_of(shape, c.attrs));
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in(0).as<T>().data();
    T* y = c.out(0).as<T>().data();
    for_each_line(
        span, [=](size_t at) { softmax_row(x + at, y + at, span.length); },
        [=](size_t at, size_t columns) {
          softmax_columns(x + at, y + at, span.length, span.inner, columns);
        });
  });
}

void run_grad(const RunCtx& c) {  // (y, dy) -> dx
  const Shape& shape = c.in(0).shape();
  const AxisSpan span(shape, axis_of(shape, c.attrs));
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *y = c.in(0).as<T>().data(), *dy = c.in(1).as<T>().data();
    T* dx = c.out(0).as<T>().data();
    for_each_line(
        span, [=](size_t at) { grad_row(y + at, dy + at, dx + at, span.length); },
        [=](size_t at, size_t columns) {
          grad_columns(y + at, dy + at, dx + at, span.length, span.inner, columns);
        });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("softmax_grad", {c.out[0], c.dout[0]}, c.attrs)};
}

std::vector<OpExample> examples() {
  return {{.in = {random_tensor({3, 5}, -3.0, 3.0)}, .refused = {{{{3, 5}, DType::i64}}}},
          {.in = {random_tensor({2, 37}, -3.0, 3.0)}},
          {.in = {random_tensor({2, 3, 4})}, .attrs = {{"axis", int64_t{1}}}},
          {.in = {random_tensor({3, 70})}, .attrs = {{"axis", int64_t{0}}}}};
}

}  // namespace

std::vector<OpDef> softmax() {
  return {{.name = "softmax",
           .trait = OpTrait::inplace,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "softmax_grad",
           .inputs = 2,
           .trait = OpTrait::inplace,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

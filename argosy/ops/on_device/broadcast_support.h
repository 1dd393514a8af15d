#pragma once

#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {

/// Maps an element of a result to its source in an array that broadcasts to it.
struct Strides {
  std::array<size_t, Shape::kMaxRank> sizes{}, steps{};
  int axes = 0;

  /// `whole` is the result's shape.
  Strides(const Shape& from, const Shape& whole) : axes(whole.rank()) {
    size_t step = 1;
    for (int i = axes - 1; i >= 0; --i) {
      const auto axis = static_cast<size_t>(i);
      const int own = i - (axes - from.rank());
      const int64_t size = own < 0 ? 1 : from[own];
      sizes[axis] = static_cast<size_t>(whole[i]);
      steps[axis] = size == 1 ? 0 : step;
      step *= static_cast<size_t>(size);
    }
  }

  ARGOSY_DEVICE size_t operator()(size_t at) const {
    size_t place = 0;
    for (int i = axes - 1; i >= 0; --i) {
      place += at % sizes[static_cast<size_t>(i)] * steps[static_cast<size_t>(i)];
      at /= sizes[static_cast<size_t>(i)];
    }
    return place;
  }
};

namespace broadcast_internal {

template <class T, class R, class F>
struct Same {
  F f;
  const T *a, *b;
  R* y;
  ARGOSY_DEVICE void operator()(size_t i) const { y[i] = f(a[i], b[i]); }
};

template <class T, class R, class F>
struct Apart {
  F f;
  const T *a, *b;
  R* y;
  Strides to_a, to_b;
  ARGOSY_DEVICE void operator()(size_t i) const { y[i] = f(a[to_a(i)], b[to_b(i)]); }
};

}  // namespace broadcast_internal

/// out = F{}(a, b) element by element with broadcasting, from T to R.
template <class T, class R, class F>
void zip(const RunCtx& c, Stream& stream) {
  using namespace broadcast_internal;
  const Tensor &a = c.in(0), &b = c.in(1);
  Tensor& y = c.out(0);
  const T *pa = a.as<T>().data(), *pb = b.as<T>().data();
  R* py = y.as<R>().data();
  if (a.numel() == y.numel() && b.numel() == y.numel())
    return for_each_index(stream, count(y), Same<T, R, F>{{}, pa, pb, py});
  for_each_index(
      stream, count(y),
      Apart<T, R, F>{{}, pa, pb, py, Strides(a.shape(), y.shape()), Strides(b.shape(), y.shape())});
}

/// zip over floats and integers, with results of the same type.
template <class F>
void zip_numbers(const RunCtx& c, Stream& stream) {
  if (c.in(0).dtype() == DType::f32) return zip<float, float, F>(c, stream);
  by_integer(c.in(0).dtype(),
             [&](auto zero) { zip<decltype(zero), decltype(zero), F>(c, stream); });
}

}  // namespace argosy::ops::on_device

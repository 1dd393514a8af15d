#pragma once

#include "argosy/ops/op_support.h"

/// Loops that several of the value ops share.
namespace argosy::ops {

/// out[i] = f(a[i], b[i], d[i]) over three inputs of one size, such as two operands and a gradient.
template <class F>
void map3(const RunCtx& c, F f) {
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *a = c.in(0).as<T>().data(), *b = c.in(1).as<T>().data(), *d = c.in(2).as<T>().data();
    T* y = c.out(0).as<T>().data();
    const auto n = static_cast<size_t>(c.out(0).numel());
    vectorized([=] {
      for (size_t i = 0; i < n; ++i) y[i] = f(a[i], b[i], d[i]);
    });
  });
}

/// Folds f(0) ... f(n-1) in 16 fixed lanes, then lane by lane: like math::sum, the order and so the
/// bits depend on n only.
template <class T, class F, class Combine>
T fold_lanes(size_t n, T start, F f, Combine combine) {
  constexpr size_t kLanes = 16;
  T lanes[kLanes];
  for (T& lane : lanes) lane = start;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = combine(lanes[lane], f(i + lane));
  for (size_t lane = 0; i + lane < n; ++lane) lanes[lane] = combine(lanes[lane], f(i + lane));
  for (size_t width = kLanes / 2; width > 0; width /= 2)
    for (size_t lane = 0; lane < width; ++lane)
      lanes[lane] = combine(lanes[lane], lanes[lane + width]);
  return lanes[0];
}

/// f(0) + ... + f(n-1).
template <class T, class F>
T sum_of(size_t n, F f) {
  return fold_lanes(n, T{0}, f, [](T a, T b) { return a + b; });
}

}  // namespace argosy::ops

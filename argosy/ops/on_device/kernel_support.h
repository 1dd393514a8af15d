#pragma once

#include <array>
#include <type_traits>

#include "argosy/base/error.h"
#include "argosy/device/algorithms.h"
#include "argosy/ops/on_device/kernel.h"
#include "argosy/tensor/math.h"

/// Shared by device kernels. A kernel's work is an object with an ARGOSY_DEVICE operator(), not a
/// lambda: nvcc does not take lambdas for devices everywhere that C++ has them. Floats are f32.
namespace argosy::ops::on_device {

using device::FaultOp;
using device::for_each_index;
using device::Stream;

inline size_t count(const Tensor& x) { return static_cast<size_t>(x.numel()); }
inline const float* floats(const Tensor& x) { return x.as<float>().data(); }
inline float* floats(Tensor& x) { return x.as<float>().data(); }

/// Calls f with a value of int32_t or int64_t.
template <class F>
void by_integer(DType dtype, F f) {
  if (dtype == DType::i32) return f(int32_t{});
  check<ConfigError>(dtype == DType::i64, "expected i32 or i64, got ", dtype);
  f(int64_t{});
}

/// Calls f with a value of any type that devices compute with.
template <class F>
void by_type(DType dtype, F f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::u8:
      return f(uint8_t{});
    case DType::b8:
      return f(bool{});
    case DType::f64:
      fail<ConfigError>("device kernels compute in f32, got f64");
  }
}

namespace support_internal {

template <class F>
F make(const Attrs& attrs) {
  if constexpr (std::is_constructible_v<F, const Attrs&>) {
    return F(attrs);
  } else {
    return F{};
  }
}

template <class F>
struct Map1 {
  F f;
  const float* a;
  float* y;
  ARGOSY_DEVICE void operator()(size_t i) const { y[i] = f(a[i]); }
};
template <class F>
struct Map2 {
  F f;
  const float *a, *b;
  float* y;
  ARGOSY_DEVICE void operator()(size_t i) const { y[i] = f(a[i], b[i]); }
};
template <class F>
struct Map3 {
  F f;
  const float *a, *b, *d;
  float* y;
  ARGOSY_DEVICE void operator()(size_t i) const { y[i] = f(a[i], b[i], d[i]); }
};

}  // namespace support_internal

/// out[i] = f(in0[i], in1[i], ...) over as many inputs of one size as F takes. F is made from the
/// op's attributes if possible.
template <class F>
void map(const RunCtx& c, Stream& stream) {
  using namespace support_internal;
  const F f = make<F>(c.attrs);
  const size_t n = count(c.out(0));
  float* y = floats(c.out(0));
  if constexpr (std::is_invocable_v<const F&, float>) {
    for_each_index(stream, n, Map1<F>{f, floats(c.in(0)), y});
  } else if constexpr (std::is_invocable_v<const F&, float, float>) {
    for_each_index(stream, n, Map2<F>{f, floats(c.in(0)), floats(c.in(1)), y});
  } else {
    for_each_index(stream, n, Map3<F>{f, floats(c.in(0)), floats(c.in(1)), floats(c.in(2)), y});
  }
}

}  // namespace argosy::ops::on_device

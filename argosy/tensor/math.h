#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "argosy/base/device_code.h"

namespace argosy::math {

// Elementary functions in plain arithmetic without branches, so that loops over them vectorise
// and every lane, instruction set and position gives the same bits. Within 2 units in the last
// place of the exact value over the normal range (math_test.cc). The double forms are the
// standard library's, for gradient checks.

ARGOSY_DEVICE inline float exp(float x) {
  constexpr float kLog2e = 1.44269504F, kHigh = 0.693359375F, kLow = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float clamped = x > 89.0F ? 89.0F : (x < -104.0F ? -104.0F : x);
  const float shifted = clamped * kLog2e + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * kHigh) - n * kLow;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  // 2^n in two factors, since n reaches past the exponents of one float.
  const int32_t whole =
      static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound));
  const int32_t half = whole >> 1;
  const auto power = [](int32_t e) {
    return std::bit_cast<float>(static_cast<uint32_t>(e + 127) << 23);
  };
  return p * power(half) * power(whole - half);
}

ARGOSY_DEVICE inline float log(float x) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2))
  const uint32_t shifted = bits - 0x3f3504f3U;
  const auto e = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float m = std::bit_cast<float>((shifted & 0x007fffffU) + 0x3f3504f3U) - 1.0F;
  float p = 7.0376836292e-2F;
  p = p * m - 1.1514610310e-1F;
  p = p * m + 1.1676998740e-1F;
  p = p * m - 1.2420140846e-1F;
  p = p * m + 1.4249322787e-1F;
  p = p * m - 1.6668057665e-1F;
  p = p * m + 2.0000714765e-1F;
  p = p * m - 2.4999993993e-1F;
  p = p * m + 3.3333331174e-1F;
  const float m2 = m * m;
  float y = p * m * m2 + e * -2.12194440e-4F;
  y = y - 0.5F * m2;
  y = m + y + e * 0.693359375F;
  y = x == kInf ? kInf : y;
  y = x == 0.0F ? -kInf : y;
  return x >= 0.0F ? y : std::numeric_limits<float>::quiet_NaN();
}

/// log(1 + x) for x in [0, 1], exact also where 1 + x rounds.
ARGOSY_DEVICE inline float log1p(float x) {
  const float u = 1.0F + x;
  return log(u) + (x - (u - 1.0F)) / u;  // what rounding took from u, to first order
}

ARGOSY_DEVICE inline float tanh(float x) {
  const float a = x < 0.0F ? -x : x;
  const float s = x * x;
  float p = -5.70498872745e-3F;
  p = p * s + 2.06390887954e-2F;
  p = p * s - 5.37397155531e-2F;
  p = p * s + 1.33314422036e-1F;
  p = p * s - 3.33332819422e-1F;
  const float small = p * s * x + x;
  const float big = 1.0F - 2.0F / (exp(2.0F * a) + 1.0F);
  return a < 0.625F ? small : (x < 0.0F ? -big : (x != x ? x : big));
}

ARGOSY_DEVICE inline float sigmoid(float x) {
  const float e = exp(-std::abs(x));
  const float u = 1.0F + e;
  const float q = (x < 0.0F ? e : 1.0F) / u;
  return q - q * (e - (u - 1.0F));  // what rounding took from u, where e is small
}

ARGOSY_DEVICE inline double exp(double x) { return std::exp(x); }
ARGOSY_DEVICE inline double log(double x) { return std::log(x); }
ARGOSY_DEVICE inline double log1p(double x) { return std::log1p(x); }
ARGOSY_DEVICE inline double tanh(double x) { return std::tanh(x); }
ARGOSY_DEVICE inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// Sum in 16 fixed lanes, then lane by lane: the order, and so the bits, depend on n only.
template <class T>
inline T sum(const T* x, size_t n) {
  constexpr size_t kLanes = 16;
  T lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane];
  for (size_t lane = 0; i + lane < n; ++lane) lanes[lane] += x[i + lane];
  for (size_t width = kLanes / 2; width > 0; width /= 2)
    for (size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  return lanes[0];
}

}  // namespace argosy::math

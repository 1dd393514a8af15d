#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace argosy {

/// Scrambles 64 bits so that neighbouring inputs give unrelated outputs (splitmix64's finalizer).
constexpr uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Counter-based randomness: number i of a stream is a pure function of (stream, i), so any
/// thread or server can draw any part of it. A stream comes from (seed, name), (seed, key) or
/// (seed, step, node), never from call order.
class RandomStream {
 public:
  constexpr explicit RandomStream(uint64_t seed, uint64_t sub = 0) : base_(mix(mix(seed) + sub)) {}

  constexpr uint64_t bits(uint64_t i) const { return mix(base_ + i * 0x9e3779b97f4a7c15ULL); }

  /// Uniform in [0, 1) with 53 bits.
  constexpr double uniform(uint64_t i) const {
    return static_cast<double>(bits(i) >> 11) * 0x1.0p-53;
  }

  /// Uniform in [0, n); n > 0.
  constexpr uint64_t below(uint64_t i, uint64_t n) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(bits(i)) * n) >> 64);
  }

  /// Standard normal, by Box and Muller from numbers 2i and 2i+1.
  double normal(uint64_t i) const {
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform(2 * i)));
    return radius * std::cos(2.0 * std::numbers::pi * uniform(2 * i + 1));
  }

 private:
  uint64_t base_;
};

}  // namespace argosy

#include "argosy/modes/ranks/half_floats.h"

#include <bit>
#include <cstddef>

#include "argosy/base/error.h"
#include "argosy/base/isa.h"

namespace argosy {
namespace {

constexpr uint32_t kSign = 0x8000'0000, kInfinity = 0x7F80'0000;

uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  const bool nan = (bits & ~kSign) > kInfinity;
  return static_cast<uint16_t>((nan ? bits | 0x0040'0000 : rounded) >> 16);
}

float from_bf16(uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); }

/// Below 2^-14 an addition moves the bits to their place, with the rounding of the machine.
uint16_t to_f16(float value) {
  constexpr uint32_t kLeastNormal = 113U << 23, kTooLarge = 0x477F'F000, kShift = 126U << 23;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t size = bits & ~kSign;
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(size) + std::bit_cast<float>(kShift)) - kShift;
  const uint32_t normal = (size - (112U << 23) + 0xFFF + ((size >> 13) & 1)) >> 13;
  const uint32_t large = size > kInfinity ? 0x7E00 : 0x7C00;
  const uint32_t half = size >= kTooLarge ? large : size < kLeastNormal ? small : normal;
  return static_cast<uint16_t>(half | ((bits & kSign) >> 16));
}

float from_f16(uint16_t half) {
  const uint32_t size = half & 0x7FFFU;
  const auto small = std::bit_cast<uint32_t>(static_cast<float>(size) * 0x1p-24F);
  const uint32_t normal = (size << 13) + (112U << 23);
  const uint32_t large = (size << 13) | kInfinity;
  const uint32_t bits = size >= 0x7C00 ? large : size < 0x0400 ? small : normal;
  return std::bit_cast<float>(bits | (static_cast<uint32_t>(half & 0x8000U) << 16));
}

/// Calls f with the two functions of a kind.
template <class F>
void with(HalfKind kind, F f) {
  if (kind == HalfKind::bf16)
    f([](float x) { return to_bf16(x); }, [](uint16_t x) { return from_bf16(x); });
  else
    f([](float x) { return to_f16(x); }, [](uint16_t x) { return from_f16(x); });
}

}  // namespace

HalfKind half_kind(const std::string& name) {
  if (name == "f32") return HalfKind::none;
  if (name == "bf16") return HalfKind::bf16;
  check<ConfigError>(name == "f16", "gradients are sent as '", name,
                     "', expected f32, bf16 or f16");
  return HalfKind::f16;
}

void to_half(HalfKind kind, std::span<const float> from, std::span<uint16_t> to) {
  with(kind, [&](auto pack, auto) {
    vectorized([=, x = from.data(), y = to.data(), n = from.size()] {
      for (size_t i = 0; i < n; ++i) y[i] = pack(x[i]);
    });
  });
}

void from_half(HalfKind kind, std::span<const uint16_t> from, std::span<float> to) {
  with(kind, [&](auto, auto unpack) {
    vectorized([=, x = from.data(), y = to.data(), n = from.size()] {
      for (size_t i = 0; i < n; ++i) y[i] = unpack(x[i]);
    });
  });
}

void add_half(HalfKind kind, std::span<const uint16_t> from, std::span<float> to) {
  with(kind, [&](auto, auto unpack) {
    vectorized([=, x = from.data(), y = to.data(), n = from.size()] {
      for (size_t i = 0; i < n; ++i) y[i] += unpack(x[i]);
    });
  });
}

}  // namespace argosy

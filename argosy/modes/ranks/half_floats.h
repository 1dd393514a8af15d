#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace argosy {

/// Floats of 16 bits: the upper half of a float, or IEEE 754's.
enum class HalfKind : uint8_t { none, bf16, f16 };

/// "f32" (none), "bf16" or "f16". Throws ConfigError.
HalfKind half_kind(const std::string& name);

/// Rounds to nearest, ties to even; too large values become infinite. Spans of equal size.
void to_half(HalfKind kind, std::span<const float> from, std::span<uint16_t> to);
void from_half(HalfKind kind, std::span<const uint16_t> from, std::span<float> to);
/// to[i] += from[i].
void add_half(HalfKind kind, std::span<const uint16_t> from, std::span<float> to);

}  // namespace argosy

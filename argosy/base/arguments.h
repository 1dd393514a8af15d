#pragma once

#include <limits>
#include <optional>
#include <string_view>

#include "argosy/base/call.h"
#include "argosy/base/error.h"

namespace argosy {

/// Numbers an argument may take, both ends included, and how to say so. Not-a-number is in none.
struct Bounds {
  double low, high;
  const char* text;
};

inline constexpr double kLargest = std::numeric_limits<float>::max();
inline constexpr Bounds kFinite{-kLargest, kLargest, "a finite number"};
inline constexpr Bounds kNotNegative{0, kLargest, "a number of at least 0"};
inline constexpr Bounds kPositive{1e-30, kLargest, "a number above 0"};
inline constexpr Bounds kBelowOne{0, 0x1.fffffep-1, "a number from 0 to below 1"};
inline constexpr Bounds kCount{1, 0x1.0p53, "a whole number of at least 1"};
inline constexpr Bounds kSwitch{0, 1, "0 or 1"};

/// The argument by position or name, else the default, which may be missing if it must be given.
inline double argument(const Call& call, size_t position, std::string_view name,
                       const Bounds& bounds, std::optional<double> otherwise = std::nullopt) {
  const double value =
      otherwise ? call.number(position, name, *otherwise) : call.number(position, name);
  check<ConfigError>(value >= bounds.low && value <= bounds.high, "'", call.text(), "': ", name,
                     " is ", value, ", expected ", bounds.text);
  return value;
}

inline uint64_t whole_argument(const Call& call, size_t position, std::string_view name,
                               const Bounds& bounds,
                               std::optional<double> otherwise = std::nullopt) {
  const double value = argument(call, position, name, bounds, otherwise);
  const auto whole = static_cast<uint64_t>(value);
  check<ConfigError>(static_cast<double>(whole) == value, "'", call.text(), "': ", name, " is ",
                     value, ", expected ", bounds.text);
  return whole;
}

}  // namespace argosy

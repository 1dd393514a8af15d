#include "argosy/data/scanner.h"

#include <charconv>
#include <cmath>

namespace argosy {
namespace {

constexpr size_t kMostShown = 16;
constexpr size_t kMostDigits = 19;  // that uint64_t holds for sure
constexpr std::array<double, 23> kExactPowers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/// A float from a quotient of exact doubles, unless rounding twice could show: only where the
/// double lies half way between two floats.
std::optional<float> rounded(double value) {
  constexpr uint64_t kBelowFloat = (uint64_t{1} << 29) - 1, kHalf = uint64_t{1} << 28;
  if ((std::bit_cast<uint64_t>(value) & kBelowFloat) == kHalf) return std::nullopt;
  return static_cast<float>(value);
}

}  // namespace

Scanner::Read<uint64_t> Scanner::negative_id(const char* at, const char* end) {
  constexpr uint64_t kLowest = uint64_t{1} << 63;
  const Read<uint64_t> read = long_id(at + 1, end);
  if (read.stop == nullptr || read.value > kLowest) return {};
  return {0 - read.value, read.stop};
}

Scanner::Read<uint64_t> Scanner::long_id(const char* at, const char* end) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(at, end, value);
  if (error != std::errc()) return {};
  return {value, stop};
}

Scanner::Read<float> Scanner::long_real(const char* at, const char* end) {
  const bool negative = *at == '-';
  if (negative || *at == '+') ++at;
  const char* const start = at;
  if (start == end || *start == '-') return {};  // a second sign
  uint64_t mantissa = 0;
  size_t digits = 0, decimals = 0;
  bool point = false;
  for (; at != end; ++at) {
    if (is_digit(*at)) {
      if (digits < kMostDigits) mantissa = mantissa * 10 + static_cast<uint64_t>(*at - '0');
      if (mantissa != 0) ++digits;
      if (point) ++decimals;
    } else if (*at == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  const bool any = at - start > (point ? 1 : 0), exponent = at != end && (*at | 0x20) == 'e';
  constexpr uint64_t kExact = uint64_t{1} << 53;
  if (any && !exponent && digits <= kMostDigits && mantissa <= kExact &&
      decimals < kExactPowers.size()) {
    const auto value = rounded(static_cast<double>(mantissa) / kExactPowers[decimals]);
    if (value) return {negative ? -*value : *value, at};
  }
  float value = 0;
  auto [stop, error] = std::from_chars(start, end, value);
  if (error == std::errc::result_out_of_range) {
    double wide = 0;  // tells what is nearly zero from what is too large
    error = std::from_chars(start, end, wide).ec;
    value = static_cast<float>(wide);
  }
  if (error != std::errc() || !std::isfinite(value)) return {};
  return {negative ? -value : value, stop};
}

std::string Scanner::found() const {
  if (at_end()) return "the end of the line";
  const std::string_view text = rest();
  return quoted(text.substr(0, std::max<size_t>(1, text.find_first_of(" \t"))));
}

std::string quoted(std::string_view text) {
  std::string shown = "'";
  for (char c : text.substr(0, kMostShown)) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown + (text.size() > kMostShown ? "...'" : "'");
}

}  // namespace argosy

#include "argosy/base/memory_size.h"

#include <charconv>
#include <limits>

#include "argosy/base/error.h"

namespace argosy {
namespace {

constexpr std::string_view kMemoryUnits = "KMG";
constexpr int kBitsOfUnit = 10;

}  // namespace

uint64_t parse_memory(std::string_view text, std::string_view what) {
  std::string_view digits = text;
  int bits = 0;
  if (!digits.empty())
    if (const size_t unit = kMemoryUnits.find(digits.back()); unit != std::string_view::npos) {
      bits = static_cast<int>(unit + 1) * kBitsOfUnit;
      digits.remove_suffix(1);
    }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  check<ConfigError>(whole && value > 0 && value <= std::numeric_limits<uint64_t>::max() >> bits,
                     what, " is '", text, "', expected bytes such as 2G, 512M or 65536");
  return value << bits;
}

std::string memory_text(uint64_t bytes) {
  for (size_t unit = kMemoryUnits.size(); unit > 0; --unit) {
    const size_t bits = unit * kBitsOfUnit;
    if (bytes > 0 && bytes % (uint64_t{1} << bits) == 0)
      return std::to_string(bytes >> bits) + kMemoryUnits[unit - 1];
  }
  return std::to_string(bytes);
}

}  // namespace argosy

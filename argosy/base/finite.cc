#include "argosy/base/finite.h"

#include <cstdint>
#include <cstring>

#include "argosy/base/isa.h"

namespace argosy {
namespace {

/// NaN and infinity are the values whose exponent bits are all set.
template <class Bits, class T>
bool no_exponent_full(std::span<const T> values, Bits exponent) {
  static_assert(sizeof(Bits) == sizeof(T));
  Bits any = 0;
  vectorized([&any, exponent, x = values.data(), n = values.size()] {
    Bits found = 0;
    for (size_t i = 0; i < n; ++i) {
      Bits bits = 0;
      std::memcpy(&bits, x + i, sizeof bits);
      found |= static_cast<Bits>((bits & exponent) == exponent);
    }
    any = found;
  });
  return any == 0;
}

}  // namespace

bool all_finite(std::span<const float> values) {
  return no_exponent_full<uint32_t>(values, 0x7f800000U);
}

bool all_finite(std::span<const double> values) {
  return no_exponent_full<uint64_t>(values, 0x7ff0000000000000U);
}

}  // namespace argosy

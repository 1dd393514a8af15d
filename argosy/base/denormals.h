#pragma once

#include <immintrin.h>

namespace argosy {

/// Treats denormal floats as zero on this thread while it lives. Optimizer state that decays
/// towards zero turns denormal, and arithmetic on denormals is many times slower. Each thread
/// that computes needs its own, also so that all threads give the same bits.
class FlushDenormals {
 public:
  FlushDenormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero);
  }
  ~FlushDenormals() { _mm_setcsr(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  unsigned before_;
};

}  // namespace argosy

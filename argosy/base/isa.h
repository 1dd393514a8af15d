#pragma once

#include <cstdint>

namespace argosy {

/// Vector instruction sets argosy has loops for. One binary carries all of them.
enum class Isa : uint8_t { baseline, avx2, avx512 };

/// The instruction set vectorized() uses: the machine's best, unless ARGOSY_MAX_ISA (baseline |
/// avx2 | avx512) or a ScopedIsaCap limits it.
Isa isa();

const char* name(Isa isa);

/// Caps isa() for the whole process while it lives; tests compare instruction sets with it.
class ScopedIsaCap {
 public:
  explicit ScopedIsaCap(Isa cap);
  ~ScopedIsaCap();
  ScopedIsaCap(const ScopedIsaCap&) = delete;
  ScopedIsaCap& operator=(const ScopedIsaCap&) = delete;

 private:
  Isa before_;
};

namespace isa_internal {

template <class Body>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi2"), gnu::flatten, gnu::noinline]] void
run_avx512(const Body& body) {
  body();
}
template <class Body>
[[gnu::target("avx2,bmi2"), gnu::flatten, gnu::noinline]] void run_avx2(const Body& body) {
  body();
}
template <class Body>
[[gnu::flatten, gnu::noinline]] void run_baseline(const Body& body) {
  body();
}

}  // namespace isa_internal

/// Runs a loop compiled once per instruction set and picked at run time:
///   vectorized([=] { for (size_t i = 0; i < n; ++i) y[i] = f(x[i]); });
/// Without fused multiply-add and fast-math every set computes the same bits.
template <class Body>
void vectorized(const Body& body) {
  switch (isa()) {
    case Isa::avx512:
      return isa_internal::run_avx512(body);
    case Isa::avx2:
      return isa_internal::run_avx2(body);
    case Isa::baseline:
      return isa_internal::run_baseline(body);
  }
}

}  // namespace argosy

#include "argosy/base/isa.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "argosy/base/error.h"

namespace argosy {
namespace {

Isa machine_isa() {
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx512) return Isa::avx512;
  return __builtin_cpu_supports("avx2") ? Isa::avx2 : Isa::baseline;
}

Isa cap_from_environment() {
  const char* text = std::getenv("ARGOSY_MAX_ISA");
  if (text == nullptr) return Isa::avx512;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (std::string_view(text) == name(isa)) return isa;
  fail<ConfigError>("ARGOSY_MAX_ISA=", text, ", expected baseline, avx2 or avx512");
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> value = std::min(machine_isa(), cap_from_environment());
  return value;
}

}  // namespace

Isa isa() { return current().load(std::memory_order_relaxed); }

const char* name(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return "avx512";
    case Isa::avx2:
      return "avx2";
    case Isa::baseline:
      return "baseline";
  }
  return "?";
}

ScopedIsaCap::ScopedIsaCap(Isa cap) : before_(isa()) { current() = std::min(before_, cap); }
ScopedIsaCap::~ScopedIsaCap() { current() = before_; }

}  // namespace argosy

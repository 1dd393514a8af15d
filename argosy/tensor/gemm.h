#pragma once

#include <cstdint>

namespace argosy {

/// C[m,n] = A[m,k] B[k,n], row-major, then + bias[n] and max(., 0) where asked for. A transposed
/// operand lies in memory as its transpose: trans_a means A is stored as [k,m].
struct GemmSpec {
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  bool bias = false, relu = false;
  friend bool operator==(const GemmSpec&, const GemmSpec&) = default;
};

/// Single-threaded: parallelism is over batches, one compute thread each. The same spec gives the
/// same bits on the same machine. `bias` is read only if the spec uses it. Thread safety: full.
void gemm(const GemmSpec& spec, const float* a, const float* b, const float* bias, float* c);

/// The plain triple loop, for gradient checks in double.
void gemm(const GemmSpec& spec, const double* a, const double* b, const double* bias, double* c);

}  // namespace argosy

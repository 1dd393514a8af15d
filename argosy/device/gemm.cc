#include "argosy/device/gemm.h"

#include "argosy/base/error.h"

#ifdef __CUDACC__
#include <cublas_v2.h>
#endif

namespace argosy::device {

#ifdef __CUDACC__

namespace {

void expect(cublasStatus_t result, const char* what) {
  check<IoError>(result == CUBLAS_STATUS_SUCCESS, "cuBLAS: ", what, ": ",
                 cublasGetStatusString(result));
}

cublasHandle_t handle_of(const Blas& blas) { return static_cast<cublasHandle_t>(blas.handle()); }

}  // namespace

Blas::Blas(void* queue) {
  cublasHandle_t made = nullptr;
  expect(cublasCreate(&made), "cublasCreate");
  handle_ = {made, [](cublasHandle_t handle) { cublasDestroy(handle); }};
  expect(cublasSetStream(made, static_cast<cudaStream_t>(queue)), "cublasSetStream");
  expect(cublasSetMathMode(made, CUBLAS_PEDANTIC_MATH), "cublasSetMathMode");
}

// cuBLAS counts columns first, so it is asked for the transpose: C' = B' A'.
void gemm(Stream& stream, const GemmSpec& spec, const float* a, const float* b, float* c) {
  if (spec.m == 0 || spec.n == 0) return;
  if (spec.k == 0) return stream.zero(c, static_cast<size_t>(spec.m * spec.n) * sizeof(float));
  const float one = 1, none = 0;
  const auto op = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const int64_t row_of_a = spec.trans_a ? spec.m : spec.k;
  const int64_t row_of_b = spec.trans_b ? spec.k : spec.n;
  expect(cublasSgemm_64(handle_of(stream.blas()), op(spec.trans_b), op(spec.trans_a), spec.n,
                        spec.m, spec.k, &one, b, row_of_b, a, row_of_a, &none, c, spec.n),
         "cublasSgemm");
}

#else

Blas::Blas(void*) {}

void gemm(Stream&, const GemmSpec& spec, const float* a, const float* b, float* c) {
  argosy::gemm(spec, a, b, nullptr, c);
}

#endif

}  // namespace argosy::device

#pragma once

#include <memory>

#include "argosy/device/stream.h"
#include "argosy/tensor/gemm.h"

namespace argosy::device {

/// C[m,n] = A[m,k] B[k,n] as tensor/gemm.h has it, without bias and relu: cuBLAS on CUDA, the
/// processor's own product on the CPU backend. Full float precision on both.
void gemm(Stream& stream, const GemmSpec& spec, const float* a, const float* b, float* c);

/// cuBLAS state of a queue; empty on the CPU backend.
class Blas {
 public:
  explicit Blas(void* queue);
  void* handle() const { return handle_.get(); }

 private:
  std::shared_ptr<void> handle_;
};

}  // namespace argosy::device

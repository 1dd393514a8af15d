#pragma once

#include <cstdint>

#include "argosy/base/device_code.h"

namespace argosy::device {

enum class FaultOp : int32_t { embedding, gather_pool, offsets, softmax_cross_entropy };

/// A data error found by a kernel: kernels cannot throw. The first one noticed is kept, and
/// Stream::wait throws it.
struct Fault {
  int32_t found = 0;
  FaultOp op = {};
  int64_t value = 0;     // that is wrong
  int64_t position = 0;  // index of the value
  int64_t limit = 0;     // expected: 0 to limit - 1
};

/// Called by kernels.
ARGOSY_DEVICE inline void note(Fault* fault, FaultOp op, int64_t value, int64_t position,
                               int64_t limit) {
#ifdef __CUDA_ARCH__
  if (atomicCAS(&fault->found, 0, 1) != 0) return;
#else
  if (fault->found != 0) return;
  fault->found = 1;
#endif
  fault->op = op;
  fault->value = value;
  fault->position = position;
  fault->limit = limit;
}

}  // namespace argosy::device

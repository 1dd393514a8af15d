#pragma once

// Without nvcc Thrust is told to take the processor for the device.
#ifndef __CUDACC__
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <cstddef>

#include "argosy/base/device_code.h"
#include "argosy/device/stream.h"

/// Loops of device kernels, as thin as they can be: Thrust's algorithms on a stream, over plain
/// pointers to memory of the device. Compiled by nvcc they run on CUDA, else on the processor.
namespace argosy::device {

/// Lends Thrust its temporary memory from the stream, so that a steady state allocates nothing.
class ThrustMemory {
 public:
  using value_type = char;
  explicit ThrustMemory(Stream& stream) : stream_(&stream) {}
  char* allocate(std::ptrdiff_t bytes) {
    return static_cast<char*>(stream_->borrow(static_cast<size_t>(bytes)));
  }
  void deallocate(char* memory, size_t) { stream_->give_back(memory); }

 private:
  Stream* stream_;
};

/// The policy that every call takes: policy(stream, memory).
#ifdef __CUDACC__
inline auto policy(Stream& stream, ThrustMemory& memory) {
  return thrust::cuda::par_nosync(memory).on(static_cast<cudaStream_t>(stream.queue()));
}
#else
inline auto policy(Stream&, ThrustMemory& memory) { return thrust::cpp::par(memory); }
#endif

/// f(i) for i in 0 ... n - 1, in any order: f is an object whose operator() is ARGOSY_DEVICE.
template <class F>
void for_each_index(Stream& stream, size_t n, F f) {
  if (n == 0) return;
  ThrustMemory memory(stream);
  thrust::for_each_n(policy(stream, memory), thrust::counting_iterator<size_t>(0), n, f);
}

}  // namespace argosy::device

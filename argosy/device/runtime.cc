#include "argosy/device/runtime.h"

#include <cstring>
#include <new>

#include "argosy/base/error.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

namespace argosy::device::runtime {

#ifdef __CUDACC__

namespace {

void expect(cudaError_t result, const char* what) {
  check<IoError>(result == cudaSuccess, "CUDA: ", what, ": ", cudaGetErrorString(result));
}

cudaStream_t stream(void* queue) { return static_cast<cudaStream_t>(queue); }

}  // namespace

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}
std::string why_none() {
  int count = 0;
  return std::string("CUDA finds none (") + cudaGetErrorString(cudaGetDeviceCount(&count)) + ")";
}
bool can_emulate() { return false; }

void select(int device) { expect(cudaSetDevice(device), "cudaSetDevice"); }
void* make_queue() {
  cudaStream_t made = nullptr;
  expect(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreate");
  return made;
}
void free_queue(void* queue) { cudaStreamDestroy(stream(queue)); }
void wait(void* queue) { expect(cudaStreamSynchronize(stream(queue)), "a kernel or copy"); }

void* allocate(size_t bytes) {
  void* memory = nullptr;
  expect(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}
void release(void* memory) { cudaFree(memory); }
void upload(void* queue, void* to, const void* from, size_t bytes) {
  expect(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream(queue)), "a copy to it");
}
void download(void* queue, void* to, const void* from, size_t bytes) {
  expect(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream(queue)), "a copy from it");
}
void copy(void* queue, void* to, const void* from, size_t bytes) {
  expect(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream(queue)), "a copy");
}
void zero(void* queue, void* at, size_t bytes) {
  expect(cudaMemsetAsync(at, 0, bytes, stream(queue)), "cudaMemset");
}

#else

namespace {
constexpr std::align_val_t kAlign{64};
}

int device_count() { return 0; }
std::string why_none() { return "this build has no CUDA kernels (make cuda)"; }
bool can_emulate() { return true; }

void select(int) {}
void* make_queue() { return nullptr; }
void free_queue(void*) {}
void wait(void*) {}

void* allocate(size_t bytes) { return ::operator new(bytes, kAlign); }
void release(void* memory) { ::operator delete(memory, kAlign); }
void upload(void*, void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
void download(void*, void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
void copy(void*, void* to, const void* from, size_t bytes) { std::memmove(to, from, bytes); }
void zero(void*, void* at, size_t bytes) { std::memset(at, 0, bytes); }

#endif

}  // namespace argosy::device::runtime

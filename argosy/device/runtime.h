#pragma once

#include <cstddef>
#include <string>

/// The few calls that differ between CUDA and the CPU backend. One source, runtime.cc, compiled by
/// nvcc or by the host's compiler.
namespace argosy::device::runtime {

int device_count();
std::string why_none();  // "this machine has no CUDA device"
bool can_emulate();      // true for the CPU backend

void select(int device);
void* make_queue();
void free_queue(void* queue);
void wait(void* queue);

void* allocate(size_t bytes);
void release(void* memory);
void upload(void* queue, void* to, const void* from, size_t bytes);
void download(void* queue, void* to, const void* from, size_t bytes);
void copy(void* queue, void* to, const void* from, size_t bytes);
void zero(void* queue, void* at, size_t bytes);

}  // namespace argosy::device::runtime

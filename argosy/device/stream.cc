#include "argosy/device/stream.h"

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/device/devices.h"
#include "argosy/device/gemm.h"
#include "argosy/device/runtime.h"

namespace argosy::device {
namespace {

constexpr size_t kAlign = 64;

const char* name(FaultOp op) {
  switch (op) {
    case FaultOp::embedding:
      return "embedding: index ";
    case FaultOp::gather_pool:
      return "gather_pool: index ";
    case FaultOp::softmax_cross_entropy:
      return "softmax_cross_entropy: label ";
    case FaultOp::offsets:
      return "gather_pool: offset ";
  }
  return "";
}

}  // namespace

void Release::operator()(void* memory) const { runtime::release(memory); }

void* Buffer::room(size_t bytes) {
  if (bytes > size_ || memory_ == nullptr) {
    memory_.reset();
    size_ = std::max(bytes + bytes / 4, kAlign);
    memory_.reset(runtime::allocate(size_));
  }
  return memory_.get();
}

struct Stream::Lent {
  std::unique_ptr<void, Release> memory;
  size_t size = 0;
  bool lent = false;
};

Stream::Stream(int device) : device_(device) {
  devices().expect(device);
  runtime::select(device);
  queue_ = runtime::make_queue();
  fault_ = fault_memory_.room_for<Fault>(1);
  zero(fault_, sizeof(Fault));
}

Stream::~Stream() {
  blas_.reset();
  runtime::free_queue(queue_);
}

void Stream::enter() { runtime::select(device_); }

void Stream::upload(void* to, const void* from, size_t bytes) {
  if (bytes > 0) runtime::upload(queue_, to, from, bytes);
}
void Stream::download(void* to, const void* from, size_t bytes) {
  if (bytes > 0) runtime::download(queue_, to, from, bytes);
}
void Stream::copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) runtime::copy(queue_, to, from, bytes);
}
void Stream::zero(void* at, size_t bytes) {
  if (bytes > 0) runtime::zero(queue_, at, bytes);
}

void Stream::wait() {
  Fault seen;
  download(&seen, fault_, sizeof(Fault));
  runtime::wait(queue_);
  if (seen.found == 0) return;
  zero(fault_, sizeof(Fault));
  fail<DataError>(name(seen.op), seen.value, " at position ", seen.position, ", expected 0 to ",
                  seen.limit - 1);
}

void* Stream::borrow(size_t bytes) {
  Lent* best = nullptr;
  for (Lent& each : pool_)
    if (!each.lent && each.size >= bytes && (best == nullptr || each.size < best->size))
      best = &each;
  if (best == nullptr) {
    const size_t size = std::max(bytes + bytes / 4, kAlign);
    best = &pool_.emplace_back();
    *best = {.memory = std::unique_ptr<void, Release>(runtime::allocate(size)), .size = size};
  }
  best->lent = true;
  return best->memory.get();
}

void Stream::give_back(void* memory) {
  const auto found =
      std::ranges::find_if(pool_, [=](const Lent& each) { return each.memory.get() == memory; });
  if (found != pool_.end()) found->lent = false;
}

Blas& Stream::blas() {
  if (blas_ == nullptr) blas_ = std::make_unique<Blas>(queue_);
  return *blas_;
}

}  // namespace argosy::device

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "argosy/device/fault.h"

namespace argosy::device {

class Blas;

/// Frees what Stream::allocate gave.
struct Release {
  void operator()(void* memory) const;
};

/// Device memory that only grows, so that a steady state allocates nothing. Growing loses the
/// content.
class Buffer {
 public:
  /// At least `bytes`, 64-byte aligned.
  void* room(size_t bytes);
  template <class T>
  T* room_for(size_t count) {
    return static_cast<T*>(room(count * sizeof(T)));
  }

 private:
  std::unique_ptr<void, Release> memory_;
  size_t size_ = 0;
};

/// A queue of work on one device: calls return at once, work runs in order, wait() returns when all
/// of it is done. On the CPU backend each call does its work before it returns. The constructor
/// selects the device for the calling thread. Thread safety: one thread at a time.
class Stream {
 public:
  /// Throws ConfigError if there is no such device.
  explicit Stream(int device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// To be called by a thread that takes over from the one that made it.
  void enter();

  /// Copies from and to host memory, which must not change until wait().
  void upload(void* to, const void* from, size_t bytes);
  void download(void* to, const void* from, size_t bytes);
  void copy(void* to, const void* from, size_t bytes);  // within the device
  void zero(void* at, size_t bytes);
  /// Throws DataError for a kernel's Fault, IoError if the device failed.
  void wait();

  /// Scratch memory for one kernel: once given back it may be lent again at once, as the next
  /// borrower's work comes later in the queue.
  void* borrow(size_t bytes);
  void give_back(void* memory);

  Fault* fault() { return fault_; }  // on the device
  void* queue() { return queue_; }   // cudaStream_t
  Blas& blas();

 private:
  struct Lent;
  int device_;
  void* queue_ = nullptr;
  std::vector<Lent> pool_;
  Buffer fault_memory_;
  Fault* fault_ = nullptr;
  std::unique_ptr<Blas> blas_;
};

/// Memory borrowed for one scope.
template <class T>
class Scratch {
 public:
  Scratch(Stream& stream, size_t count)
      : stream_(stream), data_(static_cast<T*>(stream.borrow(count * sizeof(T)))) {}
  ~Scratch() { stream_.give_back(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }

 private:
  Stream& stream_;
  T* data_;
};

}  // namespace argosy::device

#pragma once

#include <mutex>

// Clang checks these; other compilers see nothing.
#if defined(__clang__)
#define ARGOSY_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define ARGOSY_THREAD_ANNOTATION(x)
#endif
#define GUARDED_BY(x) ARGOSY_THREAD_ANNOTATION(guarded_by(x))
#define REQUIRES(...) ARGOSY_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))

namespace argosy {

/// std::mutex that clang's thread-safety analysis understands.
class ARGOSY_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() ARGOSY_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  bool try_lock() ARGOSY_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return mutex_.try_lock();
  }
  void unlock() ARGOSY_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class ARGOSY_THREAD_ANNOTATION(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) ARGOSY_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  /// Of a mutex that is locked already.
  Lock(Mutex& mutex, std::adopt_lock_t) ARGOSY_THREAD_ANNOTATION(requires_capability(mutex))
      : mutex_(mutex) {}
  ~Lock() ARGOSY_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace argosy

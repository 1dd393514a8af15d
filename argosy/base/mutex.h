#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>

#include "argosy/base/scheduler.h"
#include "argosy/base/source_loc.h"

// Checked by clang; other compilers ignore these.
#if defined(__clang__)
#define ARGOSY_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define ARGOSY_THREAD_ANNOTATION(x)
#endif
#define GUARDED_BY(x) ARGOSY_THREAD_ANNOTATION(guarded_by(x))
#define REQUIRES(...) ARGOSY_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))

namespace argosy {

/// std::mutex that clang's thread-safety analysis understands, and a simulation.
class ARGOSY_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() ARGOSY_THREAD_ANNOTATION(acquire_capability()) {
    if (Scheduler* const scheduler = Scheduler::current(); scheduler == nullptr) [[likely]]
      mutex_.lock();
    else
      scheduler->lock(mutex_, Scheduler::Patience::endless);
  }
  bool try_lock() ARGOSY_THREAD_ANNOTATION(try_acquire_capability(true)) {
    if (Scheduler* const scheduler = Scheduler::current(); scheduler == nullptr) [[likely]]
      return mutex_.try_lock();
    else
      return scheduler->lock(mutex_, Scheduler::Patience::none);
  }
  void unlock() ARGOSY_THREAD_ANNOTATION(release_capability()) {
    if (Scheduler* const scheduler = Scheduler::current(); scheduler == nullptr) [[likely]]
      mutex_.unlock();
    else
      scheduler->unlock(mutex_);
  }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ARGOSY_THREAD_ANNOTATION(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) ARGOSY_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  /// Takes over a mutex that is locked already.
  Lock(Mutex& mutex, std::adopt_lock_t) ARGOSY_THREAD_ANNOTATION(requires_capability(mutex))
      : mutex_(mutex) {}
  ~Lock() ARGOSY_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

/// Lets go of a locked mutex for the length of a scope.
class ARGOSY_THREAD_ANNOTATION(scoped_lockable) Unlocked {
 public:
  explicit Unlocked(Mutex& mutex) ARGOSY_THREAD_ANNOTATION(release_capability(mutex))
      : mutex_(mutex) {
    mutex_.unlock();
  }
  ~Unlocked() ARGOSY_THREAD_ANNOTATION(release_capability()) { mutex_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  Mutex& mutex_;
};

/// Condition variable for a Mutex: std::condition_variable on real threads, simulated on others.
/// Deadlines are in Env::Time, durations on the clock of the thread that waits. A wait without
/// `done` may end for no reason. For clang's analysis the lambdas that look at guarded members need
/// REQUIRES: changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return ended_; }).
class CondVar {
 public:
  using Time = Scheduler::Time;
  using Duration = Time::duration;

  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void wait(Mutex& mutex, const SourceLoc& where = SourceLoc::current()) REQUIRES(mutex);
  /// False: the deadline has come.
  bool wait_until(Mutex& mutex, Time deadline, const SourceLoc& where = SourceLoc::current())
      REQUIRES(mutex);

  // The following wait until `done`, called with the mutex locked, is true, and return its last
  // value.
  template <std::predicate Done>
  void wait(Mutex& mutex, Done done, const SourceLoc& where = SourceLoc::current()) REQUIRES(mutex)
      ARGOSY_THREAD_ANNOTATION(no_thread_safety_analysis) {
    while (!done()) wait(mutex, where);
  }
  template <std::predicate Done>
  bool wait_until(Mutex& mutex, Time deadline, Done done,
                  const SourceLoc& where = SourceLoc::current()) REQUIRES(mutex)
      ARGOSY_THREAD_ANNOTATION(no_thread_safety_analysis) {
    while (!done())
      if (!wait_until(mutex, deadline, where)) return done();
    return true;
  }
  template <std::predicate Done>
  bool wait_for(Mutex& mutex, Duration at_most, Done done,
                const SourceLoc& where = SourceLoc::current()) REQUIRES(mutex) {
    return wait_until(mutex, Scheduler::clock() + at_most, done, where);
  }
  /// Also until a stop is requested.
  template <std::predicate Done>
  bool wait(Mutex& mutex, const std::stop_token& stop, Done done,
            const SourceLoc& where = SourceLoc::current()) REQUIRES(mutex)
      ARGOSY_THREAD_ANNOTATION(no_thread_safety_analysis) {
    if (Scheduler::current() == nullptr) return stoppable().wait(mutex.mutex_, stop, done);
    return wait_simulated(mutex, stop, Scheduler::kNever, done, where);
  }
  template <std::predicate Done>
  bool wait_for(Mutex& mutex, const std::stop_token& stop, Duration at_most, Done done,
                const SourceLoc& where = SourceLoc::current()) REQUIRES(mutex)
      ARGOSY_THREAD_ANNOTATION(no_thread_safety_analysis) {
    const Time deadline = Scheduler::clock() + at_most;
    if (Scheduler::current() == nullptr)
      return stoppable().wait_until(mutex.mutex_, stop, deadline, done);
    return wait_simulated(mutex, stop, deadline, done, where);
  }

  void notify_one() { notify(Scheduler::Wake::one); }
  void notify_all() { notify(Scheduler::Wake::all); }

 private:
  void notify(Scheduler::Wake wake);
  /// For waits with a stop token. Called with the mutex of the wait locked.
  std::condition_variable_any& stoppable();
  template <class Done>
  bool wait_simulated(Mutex& mutex, const std::stop_token& stop, Time deadline, Done done,
                      const SourceLoc& where) ARGOSY_THREAD_ANNOTATION(no_thread_safety_analysis) {
    const std::stop_callback wake(stop, [this] { notify_all(); });
    while (!done() && !stop.stop_requested())
      if (!wait_until(mutex, deadline, where)) break;
    return done();
  }

  std::condition_variable changed_;
  // A std::condition_variable knows no stop tokens, and one that does is slower: it is made by the
  // first wait with a token.
  std::unique_ptr<std::condition_variable_any> owned_;
  std::atomic<std::condition_variable_any*> stoppable_ = nullptr;
};

}  // namespace argosy

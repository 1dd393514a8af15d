#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "argosy/base/source_loc.h"

namespace argosy {

/// The seam that makes blocking code run in a simulation. A simulated thread blocks in its
/// scheduler; a real thread has none and blocks in the operating system. Only Mutex, CondVar and
/// Thread call it.
class Scheduler {
 public:
  using Time = std::chrono::steady_clock::time_point;  // Env::Time
  static constexpr Time kNever = Time::max();

  virtual ~Scheduler() = default;

  /// The scheduler of the calling thread; null on a real thread.
  static Scheduler* current() { return current_; }
  /// The simulated time on a thread of a simulation, else the machine's.
  static Time clock() { return current_ ? current_->now() : std::chrono::steady_clock::now(); }

  virtual Time now() = 0;
  enum class Patience : uint8_t { none, endless };
  /// False: the mutex is taken, and there is no patience.
  virtual bool lock(std::mutex& mutex, Patience patience) = 0;
  virtual void unlock(std::mutex& mutex) = 0;
  /// Releases the mutex until `place` is woken, then locks it again. False: the deadline came
  /// first. `where`: the line that waits.
  virtual bool wait(const void* place, std::mutex& mutex, Time deadline,
                    const SourceLoc& where) = 0;
  enum class Wake : uint8_t { one, all };
  /// Does not yield: no other thread runs before this returns.
  virtual void wake(const void* place, Wake wake) = 0;
  /// Starts a thread; `name` is for reports. An exception it throws ends the simulation. The result
  /// is for join(), which waits for the thread's end.
  virtual uint64_t start(std::string name, std::function<void()> run) = 0;
  virtual void join(uint64_t thread) = 0;

 protected:
  static void set_current(Scheduler* scheduler) { current_ = scheduler; }

 private:
  // Read at every lock: a plain load in the Python module too, which is a shared library.
  __attribute__((tls_model(
      "initial-exec"))) static inline constinit thread_local Scheduler* current_ = nullptr;
};

}  // namespace argosy

#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "argosy/base/scheduler.h"

namespace argosy {

/// A std::jthread that also runs in a simulation: a thread started by a simulated thread is
/// simulated too, and must end before the simulation does. `name` identifies it in the simulation's
/// reports.
class Thread {
 public:
  Thread() = default;
  /// Calls run(std::stop_token) or run().
  template <class Run>
  Thread(std::string name, Run run) : scheduler_(Scheduler::current()) {
    if (scheduler_ == nullptr) {
      real_ = std::jthread(
          [token = stop_.get_token(), run = std::move(run)]() mutable { call(run, token); });
      return;
    }
    const auto kept = std::make_shared<Run>(std::move(run));  // std::function wants to copy it
    number_ = scheduler_->start(std::move(name),
                                [token = stop_.get_token(), kept] { call(*kept, token); });
  }
  /// Requests a stop and waits for the end.
  ~Thread() { end(); }
  Thread(Thread&& other) noexcept { *this = std::move(other); }
  Thread& operator=(Thread&& other) noexcept {
    if (this == &other) return *this;
    end();
    stop_ = std::exchange(other.stop_, std::stop_source());
    real_ = std::move(other.real_);
    scheduler_ = std::exchange(other.scheduler_, nullptr);
    number_ = other.number_;
    return *this;
  }

  bool joinable() const { return scheduler_ != nullptr || real_.joinable(); }
  void request_stop() { stop_.request_stop(); }
  void join();

 private:
  template <class Run>
  static void call(Run& run, const std::stop_token& token) {
    if constexpr (std::is_invocable_v<Run&, std::stop_token>)
      run(token);
    else
      run();
  }
  void end();

  std::stop_source stop_;
  std::jthread real_;
  Scheduler* scheduler_ = nullptr;  // of a simulated one
  uint64_t number_ = 0;             // there
};

/// On the clock of the thread that calls.
void sleep_for(Scheduler::Time::duration duration);

}  // namespace argosy

#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "argosy/base/env.h"
#include "argosy/base/mutex.h"

namespace argosy {

enum class Doing : uint8_t {
  starting,
  generating,
  reading,
  fetching,
  computing,
  sending,
  evaluating,
  saving,
  loading,
  meeting,
  serving,
  ending,
};

std::string_view word(Doing doing);    // "reading"
std::string_view phrase(Doing doing);  // "reads data"
std::optional<Doing> doing_of(std::string_view word);
/// Whether it needs no other process: none can be blamed if it takes long.
bool needs_nobody(Doing doing);

/// The activity of a process's threads and their progress. The thread that began something last
/// counts: its activity stays only while all of them stand still. Thread safety: full; a step never
/// waits.
class Activity {
 public:
  explicit Activity(Env& env) : env_(env) { begin(Doing::starting); }

  /// Returns when that was.
  Env::Time begin(Doing doing) {
    const Env::Time now = env_.now();
    const auto since = static_cast<uint64_t>(now.time_since_epoch().count());
    state_.store(since << kBits | static_cast<uint64_t>(doing), std::memory_order_relaxed);
    return now;
  }
  /// A step of `samples` instances has ended: number `step` of its epoch.
  void end_step(int epoch, uint64_t step, uint64_t samples) {
    epoch_.store(epoch, std::memory_order_relaxed);
    step_.store(step, std::memory_order_relaxed);
    samples_.fetch_add(samples, std::memory_order_relaxed);
  }
  /// Names an outside cause that blocks it; "": none any more.
  void note(std::string text) {
    const Lock lock(mutex_);
    note_ = std::move(text);
  }

  struct View {
    Doing doing;
    Env::Time since;
    int epoch;
    uint64_t step, samples;  // samples: of all epochs
    std::string note;
  };
  View view() const;

 private:
  std::string note() const;

  static constexpr int kBits = 4;  // of Doing; time has the others
  static_assert(static_cast<int>(Doing::ending) < 1 << kBits);
  Env& env_;
  std::atomic<uint64_t> state_ = 0, step_ = 0, samples_ = 0;
  std::atomic<int> epoch_ = 0;
  mutable Mutex mutex_;
  std::string note_ GUARDED_BY(mutex_);
};

}  // namespace argosy

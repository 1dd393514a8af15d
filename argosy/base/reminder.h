#pragma once

#include <algorithm>
#include <chrono>

namespace argosy {

/// When to speak of something that lasts: when it has lasted for `patience`, and again each time
/// that has doubled, but at least every five minutes. Pure: time comes from the caller.
class Reminder {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  Reminder(Time since, Duration patience) : since_(since), next_(since + patience) {}

  Time since() const { return since_; }
  Time next() const { return next_; }
  /// Whether it is time to; the next time is later then.
  bool due(Time now) {
    if (now < next_) return false;
    constexpr Duration kLongest = std::chrono::minutes(5);
    next_ = now + std::min(now - since_, kLongest);
    return true;
  }

 private:
  Time since_, next_;
};

}  // namespace argosy

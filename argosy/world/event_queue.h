#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argosy/base/env.h"

namespace argosy {

/// The clock of a simulated world and its future events, ordered by time, then by call. Thread
/// safety: none.
class EventQueue {
 public:
  /// Whose crash cancels the event; null: nobody's.
  using Owner = const void*;

  Env::Time now() const { return now_; }
  uint64_t at(Env::Time time, Owner whose, std::function<void()> task);
  bool cancel(uint64_t event);
  void drop(Owner whose);
  void clear();

  std::optional<Env::Time> next() const;  // empty: no event is queued
  /// Runs the next event, at its time or, if that has passed, now. Not inside an event.
  void run_next();
  bool running() const { return running_; }
  Owner running_for() const { return running_for_; }  // whose event is running
  /// Never backwards.
  void advance(Env::Time to);

  /// Releases an object once no running event can still use it.
  void bury(std::shared_ptr<const void> dead);

 private:
  struct Event {
    Owner whose;
    std::function<void()> task;
  };
  using When = std::pair<Env::Time, uint64_t>;

  Env::Time now_{};
  std::map<When, Event> queue_;
  std::unordered_map<uint64_t, Env::Time> times_;  // of queued events, by number
  uint64_t last_event_ = 0;
  bool running_ = false;
  Owner running_for_ = nullptr;
  std::vector<std::shared_ptr<const void>> dead_;
};

}  // namespace argosy

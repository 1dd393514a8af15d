#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "argosy/watch/status_line.h"

namespace argosy::launch {

/// How often a process failed and was started again, how long it was away each time, and what it
/// said was lost. Pure: time comes from the caller.
class Comebacks {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// It has failed and will be started again.
  void failed(Time now);
  /// A report of it: one with `lost` says that it is back.
  void take(const ProcessStatus& status, Time now);
  size_t count() const { return failures_; }
  /// "server 1 was started again twice and was back after 0.4 s, 0.5 s; lost: nothing"
  std::string text(const std::string& name) const;

 private:
  size_t failures_ = 0;
  std::optional<Time> away_since_;
  std::vector<double> away_;  // seconds
  std::string lost_;
};

}  // namespace argosy::launch

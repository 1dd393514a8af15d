#include "argosy/launch/comebacks.h"

#include <fmt/format.h>

#include <utility>

namespace argosy::launch {

void Comebacks::failed(Time now) {
  ++failures_;
  if (!away_since_) away_since_ = now;
}

void Comebacks::take(const ProcessStatus& status, Time now) {
  if (status.lost.empty() || !away_since_) return;
  away_.push_back(std::chrono::duration<double>(now - *std::exchange(away_since_, {})).count());
  if (lost_.empty() || lost_ == "nothing")
    lost_ = status.lost;
  else if (status.lost != "nothing" && lost_ != status.lost)
    lost_ += "; " + status.lost;
}

std::string Comebacks::text(const std::string& name) const {
  std::string text = fmt::format("{} was started again {}", name,
                                 failures_ == 1   ? "once"
                                 : failures_ == 2 ? "twice"
                                                  : fmt::format("{} times", failures_));
  if (away_.empty()) return text + (away_since_ ? " and has not said that it was back" : "");
  text += " and was back after";
  for (size_t i = 0; i < away_.size(); ++i)
    text += fmt::format("{}{:.1f} s", i == 0 ? " " : ", ", away_[i]);
  return text + "; lost: " + lost_;
}

}  // namespace argosy::launch

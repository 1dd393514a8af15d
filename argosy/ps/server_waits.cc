// What a server waits for, in words and in numbers.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "argosy/ps/server.h"

namespace argosy::ps {

std::vector<ServerWait> Server::find_waits() {
  std::vector<ServerWait> all;
  if (auto step = group_.wait())
    all.push_back({.until = ServerWait::Until::step_ended,
                   .what = fmt::format("step {}", step_ + 1),
                   .workers = std::move(step->missing),
                   .held = std::move(step->held),
                   .since = step->since});
  for (Meetings::Wait& wait : meetings_.waits())
    all.push_back({.until = ServerWait::Until::gathered,
                   .what = std::move(wait.what),
                   .workers = std::move(wait.missing),
                   .held = std::move(wait.here),
                   .since = wait.since});
  ServerWait absent{.until = ServerWait::Until::all_here, .what = "hello", .since = started_};
  for (uint32_t i = 0; i < roster_.size(); ++i)
    if (roster_.state(i) == Roster::State::awaited) absent.workers.push_back(i);
  if (!absent.workers.empty()) all.push_back(std::move(absent));
  return all;
}

/// Who has held up whom for that long, in words; empty if nobody waits.
std::string Server::waits_for(Env::Duration at_least) {
  const Env::Time before = env_.now() - at_least;
  const Lock lock(mutex_);
  const auto names = [&](const std::vector<uint32_t>& workers) REQUIRES(mutex_) {
    constexpr size_t kNamed = 8;
    std::vector<std::string> all;
    for (const uint32_t worker : std::span(workers).first(std::min(workers.size(), kNamed)))
      all.push_back(fmt::format("worker {} ({})", worker,
                                !roster_.has_come(worker)   ? "not here yet"
                                : links_[worker] != nullptr ? links_[worker]->peer()
                                                            : "link lost"));
    return fmt::format(
        "{}{}", fmt::join(all, ", "),
        workers.size() > kNamed ? fmt::format(" and {} others", workers.size() - kNamed) : "");
  };
  for (const ServerWait& wait : find_waits()) {
    if (wait.since > before) continue;
    const std::string missing = names(wait.workers);
    switch (wait.until) {
      case ServerWait::Until::step_ended:
        return fmt::format("{}: {} wait for {}", wait.what, names(wait.held), missing);
      case ServerWait::Until::gathered:
        return fmt::format("'{}': {} of {} are there, it waits for {}", wait.what, wait.held.size(),
                           roster_.size(), missing);
      case ServerWait::Until::all_here:
        return "waits for " + missing;
    }
  }
  return "";
}

ServerActivity Server::activity() {
  const Lock lock(mutex_);
  ServerActivity activity{.waits = find_waits(), .tasks = {}};
  for (uint32_t i = 0; i < roster_.size(); ++i) {
    const Ledger::Entry::Asked& asked = ledger_[i].asked;
    if (asked.id > 0 && !asked.answer && !asked.meets)
      activity.tasks.push_back({asked.verb, asked.since});
  }
  return activity;
}

}  // namespace argosy::ps

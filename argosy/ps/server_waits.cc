// What a server waits for, in words and in numbers.
#include <fmt/format.h>

#include <algorithm>

#include "argosy/ps/server.h"

namespace argosy {

/// Who has held up whom for that long, in words; empty if nobody waits.
std::string PsServer::waits_for(Env::Duration at_least) {
  const Env::Time before = env_.now() - at_least;
  const Lock group(group_);
  const auto names = [&](const std::vector<uint32_t>& numbers) {
    std::vector<std::string> all;
    for (const uint32_t number : numbers) {
      Worker& worker = workers_[number];
      const Lock lock(worker.mutex);
      all.push_back(fmt::format("worker {} ({})", number,
                                !worker.joined           ? "not here yet"
                                : worker.link != nullptr ? worker.link->peer()
                                                         : "link lost"));
    }
    return fmt::format("{}", fmt::join(all, ", "));
  };
  for (const ServerWait& wait : find_waits()) {
    if (wait.since > before) continue;
    const std::string missing = names(wait.workers);
    switch (wait.until) {
      case ServerWait::Until::step_ended:
        return fmt::format("{}: {} wait for {}", wait.what, names(wait.held), missing);
      case ServerWait::Until::gathered:
        return fmt::format("'{}': {} of {} are there, it waits for {}", wait.what, wait.held.size(),
                           workers_.size(), missing);
      case ServerWait::Until::all_here:
        return "waits for " + missing;
    }
  }
  return "";
}

/// Of the members of the step group, if some have ended the step and others have not.
std::optional<ServerWait> PsServer::find_step_wait() {
  ServerWait wait{.what = fmt::format("step {}", step_ + 1), .since = env_.now()};
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (worker.left || !worker.member) continue;
    const Lock lock(worker.mutex);
    (worker.held ? wait.held : wait.workers).push_back(i);
    if (worker.held) wait.since = std::min(wait.since, worker.held->since);
  }
  if (wait.held.empty() || wait.workers.empty()) return std::nullopt;
  return wait;
}

std::vector<ServerWait> PsServer::find_waits() {
  std::vector<ServerWait> all;
  if (auto wait = find_step_wait()) all.push_back(std::move(*wait));
  for (const auto& [line, gathering] : gatherings_) {
    ServerWait wait{.until = ServerWait::Until::gathered, .what = line, .since = gathering.since};
    for (const auto& [worker, id] : gathering.asked) wait.held.push_back(worker);
    wait.workers = missing(gathering);
    if (!wait.workers.empty()) all.push_back(std::move(wait));
  }
  ServerWait absent{.until = ServerWait::Until::all_here, .what = "hello", .since = started_};
  for (uint32_t i = 0; i < workers_.size(); ++i)
    if (!workers_[i].joined && !workers_[i].left) absent.workers.push_back(i);
  if (!absent.workers.empty()) all.push_back(std::move(absent));
  return all;
}

ServerActivity PsServer::activity() {
  const Lock group(group_);
  ServerActivity activity{.waits = find_waits()};
  for (Worker& worker : workers_) {
    const Lock lock(worker.mutex);
    const bool gathers = worker.verb == "join" || worker.verb.starts_with("gather ");
    if (worker.control > 0 && !worker.result && !gathers)
      activity.tasks.push_back({worker.verb, worker.asked});
  }
  return activity;
}

size_t PsServer::rows() const {
  size_t rows = 0;
  for (const auto& table : sparse_) rows += table->size();
  return rows;
}

}  // namespace argosy

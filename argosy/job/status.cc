#include "argosy/job/status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <deque>

namespace argosy {
namespace {

constexpr auto kFiguresOf = std::chrono::seconds(5);

double seconds(Env::Duration duration) {
  return std::max(0.0, std::chrono::duration<double>(duration).count());
}

/// Remembers counts of a few seconds ago.
class RecentFigures {
 public:
  void take(Env::Time at, uint64_t samples, const ps::Client::Staleness& staleness) {
    counts_.push_back({at, samples, staleness});
    while (counts_.size() > 2 && counts_[1].at + kFiguresOf <= at) counts_.pop_front();
  }
  void put_into(ProcessStatus& status) const {
    const Counts &first = counts_.front(), &last = counts_.back();
    if (last.at > first.at)
      status.rate = static_cast<double>(last.samples - first.samples) / seconds(last.at - first.at);
    const uint64_t pushes = last.staleness.pushes - first.staleness.pushes;
    if (pushes > 0)
      status.staleness = static_cast<double>(last.staleness.steps - first.staleness.steps) /
                         static_cast<double>(pushes);
  }

 private:
  struct Counts {
    Env::Time at;
    uint64_t samples;
    ps::Client::Staleness staleness;
  };
  std::deque<Counts> counts_;
};

ProcessStatus status_of(int index, const Activity::View& view, Env::Time now) {
  return {.role = "worker",
          .index = static_cast<uint32_t>(index),
          .pid = ::getpid(),
          .doing = view.doing,
          .since = seconds(now - view.since),
          .epoch = view.epoch,
          .step = view.step,
          .note = view.note};
}

bool needs_other_ranks(Doing doing) {
  return doing == Doing::fetching || doing == Doing::sending || doing == Doing::meeting;
}

}  // namespace

StatusReport::Look with_loss(StatusReport::Look look, std::string lost) {
  if (!look || lost.empty()) return look;
  return [look = std::move(look), lost = std::move(lost)] {
    std::optional<ProcessStatus> status = look();
    if (status) status->lost = lost;
    return status;
  };
}

StatusReport::Look look_at_rank(Env& env, int index, int ranks, const Activity& activity) {
  return [&env, index, ranks, &activity,
          recent = RecentFigures()]() mutable -> std::optional<ProcessStatus> {
    const Activity::View view = activity.view();
    const Env::Time now = env.now();
    ProcessStatus status = status_of(index, view, now);
    recent.take(now, view.samples, {});
    recent.put_into(status);
    if (!needs_other_ranks(view.doing)) return status;
    Wait wait;
    wait.role = "worker";
    wait.seconds = status.since;
    wait.what = "to meet";
    if (view.doing != Doing::meeting) wait.what = fmt::format("to end step {}", view.step + 1);
    for (int rank = 0; rank < ranks; ++rank)
      if (rank != index) wait.peers.listed.push_back(static_cast<uint32_t>(rank));
    status.waits.push_back(std::move(wait));
    return status;
  };
}

StatusReport::Look look_at_worker(Env& env, int index, const Activity& activity,
                                  std::shared_ptr<const ps::Client> client) {
  return [&env, index, &activity, client = std::move(client),
          recent = RecentFigures()]() mutable -> std::optional<ProcessStatus> {
    const Activity::View view = activity.view();
    const Env::Time now = env.now();
    ProcessStatus status = status_of(index, view, now);
    status.queue = client->under_way();
    recent.take(now, view.samples, client->staleness());
    recent.put_into(status);
    for (ps::ClientWait& wait : client->waits())
      status.waits.push_back({.role = "server",
                              .peers = {{wait.server}},
                              .seconds = seconds(now - wait.since),
                              .what = std::move(wait.what)});
    return status;
  };
}

StatusReport::Look look_at_server(Env& env, int index, std::weak_ptr<ps::Server> server) {
  return [&env, index, server = std::move(server),
          started = env.now()]() -> std::optional<ProcessStatus> {
    const auto alive = server.lock();
    if (alive == nullptr) return std::nullopt;
    ps::ServerActivity activity = alive->activity();
    const Env::Time now = env.now();
    ProcessStatus status{.role = "server",
                         .index = static_cast<uint32_t>(index),
                         .pid = ::getpid(),
                         .doing = Doing::serving,
                         .since = seconds(now - started),
                         .step = alive->step(),
                         .rows = alive->shard().rows()};
    uint64_t owed = activity.tasks.size();
    for (ps::ServerWait& wait : activity.waits) {
      owed += wait.held.size();
      status.waits.push_back({.role = "worker",
                              .peers = {std::move(wait.workers)},
                              .seconds = seconds(now - wait.since),
                              .held = {std::move(wait.held)},
                              .what = std::move(wait.what)});
    }
    status.queue = owed;
    for (const ps::ServerActivity::Task& task : activity.tasks) {
      const bool saves = task.verb == ps::verbs::Save::kName,
                 loads = task.verb == ps::verbs::Load::kName;
      if (!saves && !loads) continue;
      status.doing = saves ? Doing::saving : Doing::loading;
      status.since = seconds(now - task.since);
    }
    return status;
  };
}

}  // namespace argosy

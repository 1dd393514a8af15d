#include "argosy/modes/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/modes/mode.h"
#include "argosy/ps/client.h"

namespace argosy {
namespace {

/// Lines of several threads, each whole.
std::function<void(const std::string&)> line_writer(std::FILE* out) {
  auto mutex = std::make_shared<Mutex>();
  return [out, mutex](const std::string& line) {
    const Lock lock(*mutex);
    fmt::print(out, "{}\n", line);
    std::fflush(out);
  };
}

std::atomic<int> stop_asked = 0;

void ask_to_stop(int) { stop_asked = 1; }

/// While it lives SIGTERM and SIGINT ask for a stop.
class StopSignals {
 public:
  StopSignals() {
    stop_asked = 0;
    for (size_t i = 0; i < kSignals.size(); ++i) before_[i] = std::signal(kSignals[i], ask_to_stop);
  }
  ~StopSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], before_[i]);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGINT};
  std::array<void (*)(int), kSignals.size()> before_{};
};

/// Saves and loads, one at a time, beside the threads that serve. Waits for the last one.
class Background {
 public:
  void run(std::function<void()> task) {
    const Lock lock(mutex_);
    // Joins the previous one, so that there are never more than two threads.
    thread_ = std::jthread([task = std::move(task), before = std::move(thread_)]() mutable {
      if (before.joinable()) before.join();
      task();
    });
  }

 private:
  Mutex mutex_;
  std::jthread thread_ GUARDED_BY(mutex_);
};

}  // namespace

ps::Placement placement_of(const Plan& plan, const Strategy& strategy, uint32_t servers,
                           const ps::PlacementOptions& options) {
  Mode::Held held = mode(strategy.mode).on_servers(plan);
  return ps::place(std::move(held.parameters), std::move(held.tables), plan.key_sets, servers,
                   options);
}

void serve(Env& env, const ps::Placement& placement, const Role& role,
           const ServeOptions& options) {
  check<ConfigError>(role.is_server(), "this process is ", role.text(), ", not a server");
  const StopSignals signals;
  Background background;
  const Tolerance& tolerance = options.tolerance;
  const Env::Duration away = std::chrono::seconds(role.away);
  ps::RosterLimits limits{.come_within = tolerance.give_up,
                          .quiet = tolerance.quiet,
                          .grace = tolerance.quiet,
                          .away = away,
                          .give_up = tolerance.give_up};
  // Workers that have been without this server for longer have given it up.
  if (role.restarts > 0) limits.come_within = std::max(tolerance.quiet, away);
  const auto server = ps::Server::make(
      env, placement,
      {.index = static_cast<uint32_t>(role.index),
       .workers = static_cast<uint32_t>(role.worker_num),
       .job = role.job,
       .sync = mode(options.strategy.mode).sync,
       // Workers and other servers often share the machine.
       .threads = options.threads > 0
                      ? options.threads
                      : std::clamp<size_t>(std::thread::hardware_concurrency() / 4, 1, 8),
       .limits = limits,
       .patience = tolerance.patience,
       .log = line_writer(options.out),
       .on_save = options.on_save,
       .metrics = options.metrics,
       .journal = options.journal,
       .on_settled = options.on_settled,
       .table_folder = options.table_folder,
       .background = [&](std::function<void()> task) { background.run(std::move(task)); }});
  if (options.before) server->alone([&] { options.before(*server); });
  // Destroyed first: no input arrives any more when the server goes.
  const std::unique_ptr<Transport> transport = tcp_transport();
  const Endpoint at =
      role.listen_fd
          ? transport->listen_fd(*role.listen_fd, server->acceptor())
          : transport->listen(role.servers[static_cast<size_t>(role.index)], server->acceptor());
  fmt::print(options.out, "Server listening on {}\n", at.text());
  std::fflush(options.out);
  server->wait([&] { return stop_asked != 0 || (options.stop && options.stop()); });
  server->wait_for_goodbyes(std::chrono::seconds(3));
  const std::string failure = server->failure();
  check<IoError>(failure.empty(), failure);
  if (options.after) options.after();
}

LinkOptions worker_links(const Strategy& strategy) { return mode(strategy.mode).links; }

Wires connect_servers(Env& env, Transport& transport, ps::Placement placement, const Role& role,
                      const Strategy& strategy, std::FILE* out) {
  check<ConfigError>(role.kind == RoleKind::worker, "this process is ", role.text(),
                     ", not a worker of a job");
  // Every batch that is read ahead has a list of keys, and so has every gradient to be merged.
  constexpr int kAhead = 4;
  const int lists = (kAhead + strategy.max_merge) * strategy.threads + strategy.send_queue;
  ps::ClientOptions options{.servers = role.servers,
                            .worker = static_cast<uint32_t>(role.index),
                            .workers = static_cast<uint32_t>(role.worker_num),
                            .job = role.job,
                            .restarts = static_cast<uint32_t>(role.restarts),
                            .inflight = static_cast<uint32_t>(lists),
                            .tolerance = tolerance_from_env(),
                            .away = std::chrono::seconds(role.away),
                            .log = line_writer(out)};
  return {ps::Client::make(env, transport, std::move(placement), std::move(options))};
}

}  // namespace argosy

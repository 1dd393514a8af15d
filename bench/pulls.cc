// A server that holds many rows (9 weights with Adam's state) and two workers that pull batches of
// zipf keys from it, in separate processes over loopback; the server with one thread that works on
// rows, and with several.
#include <cmath>
#include <ctime>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/modes/serve.h"
#include "argosy/modes/server_calls.h"
#include "argosy/world/env.h"
#include "bench/bench.h"
#include "bench/processes.h"

namespace argosy::benches {
namespace {

constexpr size_t kDim = 9, kBatch = 6220, kWorkers = 2, kUnderWay = 3;
constexpr double kPayload = sizeof(Key) + 3 * kDim * sizeof(float);

struct Measured {
  double rows_per_second = 0, resident_bytes = 0;
  double cpu_seconds = 0, server_seconds = 0;  // while it pulled
};

ps::Placement placement() {
  ps::TableSpec spec{.name = "rows", .dim = kDim, .rule = "adam", .init = "uniform(-0.01, 0.01)"};
  return ps::place({}, {spec}, {0}, 1);
}

/// That a process has used so far.
double cpu_seconds(pid_t process) {
  clockid_t clock{};
  timespec now{};
  check<IoError>(clock_getcpuclockid(process, &clock) == 0 && clock_gettime(clock, &now) == 0,
                 "no clock of process ", process);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Measured serve_rows(const Role& role, size_t threads) {
  const auto env = real_env();
  std::FILE* const nowhere = std::fopen("/dev/null", "w");
  const double before = resident_bytes();
  double after = 0;
  serve(*env, placement(), role,
        {.threads = threads, .after = [&] { after = resident_bytes(); }, .out = nowhere});
  std::fclose(nowhere);
  return {.resident_bytes = after - before};
}

/// Keeps a few pulls under way; the rows land in memory that is used again.
class Puller {
 public:
  explicit Puller(ps::Client& client) : client_(client) {}

  void pull(std::vector<Key> keys) {
    Slot& slot = next_slot();
    slot.rows.resize(keys.size() * kDim);
    const auto exchange = std::make_shared<ps::Exchange>();
    exchange->lists = lists_of(std::move(keys));
    exchange->rows.emplace_back(slot.rows);
    slot.arrival = begin(client_, exchange);
  }
  /// Pushes nothing to these rows.
  void make(std::vector<Key> keys) {
    const std::vector<float> zeros(keys.size() * kDim);
    const auto exchange = std::make_shared<ps::Exchange>();
    exchange->pushes.push_back({lists_of(std::move(keys)), {zeros}});
    next_slot().arrival = begin(client_, exchange);
  }
  void finish() {
    for (Slot& slot : slots_)
      if (slot.arrival != nullptr) std::exchange(slot.arrival, nullptr)->wait();
  }

 private:
  struct Slot {
    std::shared_ptr<Arrival> arrival;
    std::vector<float> rows;
  };
  Slot& next_slot() {
    Slot& slot = slots_[next_++ % kUnderWay];
    if (slot.arrival != nullptr) slot.arrival->wait();
    return slot;
  }
  std::shared_ptr<ps::KeyLists> lists_of(std::vector<Key> keys) const {
    const std::vector<std::vector<Key>> sets = {std::move(keys)};
    return std::make_shared<ps::KeyLists>(client_.placement(), sets);
  }

  ps::Client& client_;
  Slot slots_[kUnderWay];
  size_t next_ = 0;
};

Measured pull_rows(const Role& role, pid_t server, uint64_t rows, int64_t batches) {
  const auto env = real_env();
  const auto transport = tcp_transport(worker_links({.mode = "async"}));
  const Wires wires = connect_servers(*env, *transport, placement(), role, {});
  Puller puller(*wires.servers);
  const auto worker = static_cast<uint64_t>(role.index);
  std::vector<Key> keys;
  for (uint64_t row = worker; row < rows; row += kWorkers) {
    keys.push_back(mix(row + 1));
    if (keys.size() == kBatch) puller.make(std::exchange(keys, {}));
  }
  if (!keys.empty()) puller.make(keys);
  puller.finish();
  const RandomStream random(worker);
  std::vector<std::vector<Key>> ready(64);
  for (size_t i = 0; i < ready.size(); ++i)
    for (uint64_t j = 0; j < kBatch; ++j) {
      const double rank = std::pow(static_cast<double>(rows), random.uniform(i * kBatch + j));
      ready[i].push_back(mix(RandomStream(static_cast<uint64_t>(rank)).below(0, rows) + 1));
    }
  gather(*wires.servers, "bench", 1, "all rows are made", {});
  const double start = seconds_now(), own = cpu_seconds(::getpid()), its = cpu_seconds(server);
  for (int64_t i = 0; i < batches; ++i) puller.pull(ready[static_cast<size_t>(i) % ready.size()]);
  puller.finish();
  const double seconds = seconds_now() - start;
  Measured measured{
      .rows_per_second = static_cast<double>(batches * static_cast<int64_t>(kBatch)) / seconds,
      .cpu_seconds = cpu_seconds(::getpid()) - own,
      .server_seconds = cpu_seconds(server) - its};
  call_all(*wires.servers, ps::verbs::Leave{});
  wires.servers->close();
  return measured;
}

/// Measures a job whose server has this many threads.
Measured measure(size_t threads, uint64_t rows, int64_t batches) {
  Role role{.kind = RoleKind::server, .worker_num = kWorkers};
  role.servers.resize(1);
  role.listen_fd = listening_socket(role.servers[0]);
  BenchProcess<Measured> server([&] { return serve_rows(role, threads); });
  ::close(*role.listen_fd);
  role.kind = RoleKind::worker;
  std::vector<BenchProcess<Measured>> workers;
  for (size_t i = 0; i < kWorkers; ++i) {
    role.index = static_cast<int>(i);
    workers.emplace_back([&] { return pull_rows(role, server.pid(), rows, batches); });
  }
  Measured all;
  for (auto& worker : workers) {
    const Measured measured = worker.wait();
    all.rows_per_second += measured.rows_per_second;
    all.cpu_seconds += measured.cpu_seconds;
    all.server_seconds = std::max(all.server_seconds, measured.server_seconds);
  }
  all.resident_bytes = server.wait().resident_bytes;
  return all;
}

/// The medians of several jobs, field by field.
Measured medians(const std::vector<Measured>& jobs) {
  const auto of = [&](double Measured::*field) {
    std::vector<double> values;
    values.reserve(jobs.size());
    for (const Measured& job : jobs) values.push_back(job.*field);
    return median(values);
  };
  return {.rows_per_second = of(&Measured::rows_per_second),
          .resident_bytes = of(&Measured::resident_bytes),
          .cpu_seconds = of(&Measured::cpu_seconds),
          .server_seconds = of(&Measured::server_seconds)};
}

BenchResults run(const BenchFlags& flags) {
  const auto rows = static_cast<uint64_t>(integer(flags, "rows"));
  const auto threads = static_cast<size_t>(integer(flags, "threads"));
  const int64_t batches = integer(flags, "batches");
  std::vector<Measured> by_one, by_several;
  for (int64_t round = 0; round < integer(flags, "rounds"); ++round) {  // in turns
    by_one.push_back(measure(1, rows, batches));
    if (threads > 1) by_several.push_back(measure(threads, rows, batches));
  }
  const Measured one = medians(by_one);
  const double bytes = one.resident_bytes / static_cast<double>(rows);
  BenchResults results{{"rows_per_second", one.rows_per_second},
                       {"server_cpu_seconds", one.server_seconds},
                       {"clients_cpu_seconds", one.cpu_seconds},
                       {"bytes_per_row", bytes},
                       {"ratio_to_payload", bytes / kPayload}};
  if (threads == 1) return results;
  const Measured several = medians(by_several);
  // One thread of the server is the bottleneck; two cores can at most share all the work.
  const double all = one.server_seconds + one.cpu_seconds;
  const double most = 2 * one.server_seconds / all;
  const double ratio = several.rows_per_second / one.rows_per_second;
  results.insert(results.end(),
                 {{"rows_per_second_of_several", several.rows_per_second},
                  {"server_cpu_seconds_of_several", several.server_seconds},
                  {"clients_cpu_seconds_of_several", several.cpu_seconds},
                  {"several_to_one", ratio},
                  {"two_cores_allow", most},
                  {"ratio_to_that", ratio / most},
                  // Bound by the added CPU work, if nobody else uses the machine.
                  {"ratio_to_that_by_cpu", all / (several.server_seconds + several.cpu_seconds)}});
  return results;
}

}  // namespace

Bench pulls() {
  return {.help = "two workers that pull rows from a server with many of them",
          .flags = {{"rows", "10000000"}, {"batches", "1000"}, {"threads", "1"}, {"rounds", "1"}},
          .run = run};
}

}  // namespace argosy::benches

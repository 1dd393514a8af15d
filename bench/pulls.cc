// A server that holds many rows (9 weights with Adam's state) and two workers that pull batches of
// zipf keys from it, all processes of their own over loopback.
#include <cmath>
#include <fstream>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/fleet/serve.h"
#include "argosy/fleet/server_calls.h"
#include "argosy/net/env.h"
#include "bench/bench.h"
#include "bench/processes.h"

namespace argosy::benches {
namespace {

constexpr size_t kDim = 9, kBatch = 6220, kWorkers = 2, kUnderWay = 3;
constexpr double kPayload = sizeof(Key) + 3 * kDim * sizeof(float);

struct Figures {
  double rows_per_second = 0, resident_bytes = 0;
};

Placement placement() {
  TableSpec spec{.name = "rows", .dim = kDim, .rule = "adam", .init = "uniform(-0.01, 0.01)"};
  return place({spec}, {0}, 1);
}

/// Resident bytes of another process of the benchmark.
double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

Figures serve_rows(const Role& role) {
  const auto env = real_env();
  std::FILE* const nowhere = std::fopen("/dev/null", "w");
  const double before = resident_bytes();
  double after = 0;
  serve(*env, placement(), role, {.after = [&] { after = resident_bytes(); }, .out = nowhere});
  std::fclose(nowhere);
  return {0, after - before};
}

/// Keeps a few pulls under way; the rows land in memory that is used again.
class Puller {
 public:
  explicit Puller(PsClient& client) : client_(client) {}

  void pull(std::vector<Key> keys) {
    Slot& slot = slots_[next_++ % kUnderWay];
    if (slot.arrival != nullptr) slot.arrival->wait();
    slot.rows.resize(keys.size() * kDim);
    const auto exchange = std::make_shared<Exchange>();
    const std::vector<std::vector<Key>> sets = {std::move(keys)};
    exchange->lists = std::make_shared<KeyLists>(client_.placement(), sets);
    exchange->rows.emplace_back(slot.rows);
    slot.arrival = begin(client_, exchange);
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
  PsClient& client_;
  Slot slots_[kUnderWay];
  size_t next_ = 0;
};

Figures pull_rows(const Role& role, uint64_t rows, int64_t batches) {
  const auto env = real_env();
  const auto transport = tcp_transport(worker_links({.mode = "async"}));
  const Wires wires = connect_servers(*env, *transport, placement(), role, {});
  Puller puller(*wires.servers);
  const auto worker = static_cast<uint64_t>(role.index);
  std::vector<Key> keys;
  for (uint64_t row = worker; row < rows; row += kWorkers) {  // makes them
    keys.push_back(mix(row + 1));
    if (keys.size() == kBatch) puller.pull(std::exchange(keys, {}));
  }
  if (!keys.empty()) puller.pull(keys);
  puller.finish();
  const RandomStream random(worker);
  std::vector<std::vector<Key>> ready(64);
  for (size_t i = 0; i < ready.size(); ++i)
    for (uint64_t j = 0; j < kBatch; ++j) {
      const double rank = std::pow(static_cast<double>(rows), random.uniform(i * kBatch + j));
      ready[i].push_back(mix(RandomStream(static_cast<uint64_t>(rank)).below(0, rows) + 1));
    }
  barrier(*wires.servers, "all rows are made");
  const double start = seconds_now();
  for (int64_t i = 0; i < batches; ++i) puller.pull(ready[static_cast<size_t>(i) % ready.size()]);
  puller.finish();
  const double seconds = seconds_now() - start;
  call_all(*wires.servers, {Control{"leave"}});
  wires.servers->close();
  return {static_cast<double>(batches * static_cast<int64_t>(kBatch)) / seconds, 0};
}

BenchResults run(const BenchFlags& flags) {
  const auto rows = static_cast<uint64_t>(integer(flags, "rows"));
  const int64_t batches = integer(flags, "batches");
  Role role{.kind = RoleKind::server, .worker_num = kWorkers};
  role.servers.resize(1);
  role.listen_fd = listening_socket(role.servers[0]);
  BenchProcess<Figures> server([&] { return serve_rows(role); });
  ::close(*role.listen_fd);
  role.kind = RoleKind::worker;
  std::vector<BenchProcess<Figures>> workers;
  for (size_t i = 0; i < kWorkers; ++i) {
    role.index = static_cast<int>(i);
    workers.emplace_back([&] { return pull_rows(role, rows, batches); });
  }
  double rate = 0;
  for (auto& worker : workers) rate += worker.wait().rows_per_second;
  const double bytes = server.wait().resident_bytes / static_cast<double>(rows);
  return {
      {"rows_per_second", rate}, {"bytes_per_row", bytes}, {"ratio_to_payload", bytes / kPayload}};
}

}  // namespace

Bench pulls() {
  return {.help = "two workers that pull rows from a server with many of them",
          .flags = {{"rows", "10000000"}, {"batches", "1000"}},
          .run = run};
}

}  // namespace argosy::benches

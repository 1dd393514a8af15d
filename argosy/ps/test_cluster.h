#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/log/format.h"
#include "argosy/log/reader.h"
#include "argosy/net/simulation.h"
#include "argosy/ps/client.h"
#include "argosy/ps/server.h"
#include "argosy/world/simulated_disk.h"

/// Servers and workers on a simulated network, from one seed.
namespace argosy::ps {

constexpr size_t kClusterDim = 2;
constexpr Key kShared = 1000;  // pushed by everyone
constexpr size_t kClusterParameter = 40;

/// A parameter and a table whose values are sums of what was pushed: the rule add, from zeros.
inline Placement cluster_placement(uint32_t servers, const std::string& store) {
  ParameterSpec parameter{
      .name = "w", .elements = kClusterParameter, .rule = "add", .learning_rate = "1"};
  TableSpec rows{
      .name = "rows", .dim = kClusterDim, .rule = "add", .learning_rate = "1", .store = store};
  return place({parameter}, {rows}, {0}, servers, {.min_block = 8});
}

inline constexpr Faults kStormyNetwork{.drop = 0.02,
                                       .duplicate = 0.03,
                                       .reorder = 0.05,
                                       .truncate = 0.002,
                                       .flip = 0.002,
                                       .cut = 0.005,
                                       .min_delay = std::chrono::microseconds(50),
                                       .max_delay = std::chrono::milliseconds(20)};

struct ClusterSpec {
  uint32_t servers = 2, workers = 3;
  int steps = 20;
  bool sync = false;
  Faults faults = {};
  std::string store = "memory";  // of the rows
  /// Servers keep journals, from which they come back.
  Durability durability = Durability::none;
};

/// A worker that pushes ones, step by step, with the pull of the next step in the same exchange.
class SimulatedWorker {
 public:
  SimulatedWorker(Simulation& simulation, const Placement& placement, uint32_t number,
                  const ClusterSpec& spec)
      : number_(number), spec_(spec), host_("worker" + std::to_string(number)) {
    ClientOptions options{
        .servers = {}, .worker = number, .workers = spec.workers, .away = std::chrono::minutes(5)};
    for (uint32_t s = 0; s < spec.servers; ++s)
      options.servers.push_back({"server" + std::to_string(s), 1});
    client_ = Client::make(simulation.host_env(host_), simulation.host(host_), placement,
                           std::move(options));
    pull(nullptr);
  }

  bool finished() const { return left_ == spec_.servers || crashed_ || error_ != nullptr; }
  bool crashed() const { return crashed_; }
  int acknowledged() const { return acknowledged_; }
  int sent() const { return sent_; }
  const std::string& host() const { return host_; }
  std::exception_ptr error() const { return error_; }
  void crash() {
    crashed_ = true;
    client_.reset();
  }
  Client& client() { return *client_; }

 private:
  /// Pulls the rows for the next step, with the push of the one before.
  void pull(std::shared_ptr<KeyLists> before) {
    auto exchange = std::make_shared<Exchange>();
    if (before != nullptr) {
      exchange->pushes.push_back({before, {ones_}});
      exchange->dense.emplace_back(parameter_ones_);
      exchange->ends_step = true;
      ++sent_;
    }
    const bool last = sent_ == spec_.steps;
    if (!last) {
      exchange->lists = std::make_shared<KeyLists>(client_->placement(), keys_);
      exchange->rows.emplace_back(rows_);
      exchange->parameters.emplace_back(parameter_);
    }
    exchange->done = [this, exchange = exchange.get(), pushed = before != nullptr,
                      last](std::exception_ptr error) {
      if (error != nullptr) {
        error_ = error;
        return;
      }
      if (pushed) ++acknowledged_;
      if (last) return leave();
      pull(exchange->lists);
    };
    client_->exchange(std::move(exchange));
  }

  void leave() {
    for (uint32_t server = 0; server < spec_.servers; ++server)
      client_->ask(server, request_of(verbs::Leave{}), [this](std::exception_ptr error, auto) {
        if (error != nullptr) error_ = error;
        ++left_;
      });
  }

  uint32_t number_;
  ClusterSpec spec_;
  std::string host_;
  std::vector<std::vector<Key>> keys_{{number_, kShared, 7 + number_ * 5}};
  std::vector<float> ones_ = std::vector<float>(3 * kClusterDim, 1.0F), rows_ = ones_;
  std::vector<float> parameter_ones_ = std::vector<float>(kClusterParameter, 1.0F),
                     parameter_ = parameter_ones_;
  int sent_ = 0, acknowledged_ = 0;
  uint32_t left_ = 0;
  bool crashed_ = false;
  std::exception_ptr error_;
  std::shared_ptr<Client> client_;
};

inline float row_value(Server& server, Key key) {
  return peek(server.shard().table(0), std::vector<Key>{key})[0];
}

class Cluster {
 public:
  Cluster(uint64_t seed, const ClusterSpec& spec)
      : spec_(spec),
        simulation_(seed, spec.faults),
        placement_(cluster_placement(spec.servers, spec.store)),
        servers_(spec.servers) {
    for (uint32_t i = 0; i < spec.servers; ++i) start_server(i, false);
    for (uint32_t i = 0; i < spec.workers; ++i)
      workers_.push_back(std::make_unique<SimulatedWorker>(simulation_, placement_, i, spec));
  }

  bool run(Env::Duration limit = std::chrono::minutes(30)) {
    return simulation_.run_until(
        [&] {
          return std::ranges::all_of(workers_, [](const auto& w) { return w->finished(); }) &&
                 std::ranges::all_of(servers_,
                                     [](const auto& s) { return s != nullptr && s->done(); });
        },
        limit);
  }
  void crash(uint32_t worker, Env::Duration after) {
    simulation_.env().schedule(after, [this, worker] {
      if (workers_[worker]->finished()) return;
      workers_[worker]->crash();
      simulation_.crash(workers_[worker]->host());
    });
  }

  /// Kills a server and starts it again from its journal: the process, or the whole machine if the
  /// journal survives that.
  void crash_server(uint32_t server, Env::Duration after, Env::Duration away) {
    simulation_.env().schedule(after, [this, server, away] {
      if (down_.contains(server) || servers_[server]->done()) return;
      down_.insert(server);
      log_ += "crash of server " + std::to_string(server) + "\n";
      const bool machine = spec_.durability == Durability::fsync;
      simulation_.crash("server" + std::to_string(server),
                        machine ? Simulation::Crash::machine : Simulation::Crash::process);
      servers_[server].reset();
      simulation_.env().schedule(away, [this, server] {
        down_.erase(server);
        come_back(server);
      });
    });
  }

  /// As crash_server, and meanwhile a bit of its journal flips: the server
  /// says where, does not start, and starts when the bit is as it was.
  void crash_server_and_flip(uint32_t server, Env::Duration after, Env::Duration away,
                             uint64_t seed) {
    crash_server(server, after, away);
    simulation_.env().schedule(after + away / 2, [this, server, seed] { flip(server, seed); });
  }

  /// Nothing can be written for a while, by anybody.
  void fill_disk(Env::Duration after, Env::Duration lasting) {
    simulation_.env().schedule(after, [this, lasting] {
      simulation_.disk().set_capacity(simulation_.disk().used());
      simulation_.env().schedule(lasting, [this] {
        simulation_.disk().set_capacity(std::numeric_limits<uint64_t>::max());
      });
    });
  }
  /// Servers that did not start for a flipped bit.
  size_t refusals() const { return refusals_; }

  std::vector<float> parameter_sums() {
    std::vector<float> all;
    for (uint32_t i = 0; i < spec_.servers; ++i)
      for (const float value : servers_[i]->shard().parameters()) all.push_back(value);
    return all;
  }
  /// The sum of a key's first weight over all servers: exactly one holds it.
  float value(Key key) { return row_value(*servers_[placement_.server_of(key)], key); }
  SimulatedWorker& worker(uint32_t i) { return *workers_[i]; }
  Server& server(uint32_t i) { return *servers_[i]; }
  const std::string& log() const { return log_; }
  const Placement& placement() const { return placement_; }
  Simulation& simulation() { return simulation_; }

 private:
  struct Flipped {
    std::string path;
    uint64_t offset = 0;
    unsigned bit = 0;
  };

  void flip(uint32_t server, uint64_t seed) {
    if (!down_.contains(server) || flipped_.contains(server)) return;
    SimulatedDisk& disk = simulation_.disk();
    const std::string folder = "server" + std::to_string(server);
    std::vector<std::string> segments;
    for (const std::string& name : disk.list_files(folder))
      if (const auto number = log_segment_number(name))
        segments.push_back(log_segment_path(folder, *number));
    if (segments.empty()) return;
    Dice dice(seed, 10);
    Flipped where{.path = segments[dice.below(segments.size())]};
    // In the end of the last one it would look as if the machine had gone down while it wrote.
    where.offset = dice.below(disk.open_file(where.path)->size() / 8);
    where.bit = static_cast<unsigned>(dice.below(8));
    disk.flip_bit(where.path, where.offset, where.bit);
    flipped_.emplace(server, where);
  }

  void come_back(uint32_t server) {
    const auto at = flipped_.find(server);
    if (at == flipped_.end()) return start_server(server, true);
    const Flipped where = at->second;
    flipped_.erase(at);
    try {
      start_server(server, true);
    } catch (const DataError& e) {
      ++refusals_;
      EXPECT_NE(std::string(e.what()).find(where.path), std::string::npos) << e.what();
      simulation_.disk().flip_bit(where.path, where.offset, where.bit);
      start_server(server, true);
    }
  }

  void start_server(uint32_t number, bool recover) {
    const std::string host = "server" + std::to_string(number);
    ServerOptions options{.index = number,
                          .workers = spec_.workers,
                          .sync = spec_.sync,
                          .limits = {.grace = std::chrono::seconds(20)},
                          .log = [this](const std::string& line) { log_ += line + "\n"; }};
    if (spec_.durability != Durability::none)
      options.journal = JournalOptions{.folder = host,
                                       .durability = spec_.durability,
                                       .segment_bytes = size_t{1} << 14,
                                       .recover = recover};
    servers_[number] = Server::make(simulation_.host_env(host), placement_, std::move(options));
    simulation_.host(host).listen({host, 1}, servers_[number]->acceptor());
  }

  ClusterSpec spec_;
  Simulation simulation_;
  Placement placement_;
  std::string log_;
  std::set<uint32_t> down_;
  std::map<uint32_t, Flipped> flipped_;
  size_t refusals_ = 0;
  std::vector<std::shared_ptr<Server>> servers_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
};

/// A bad network, and in two of three runs a worker that dies.
inline void expect_exact_sums(uint64_t seed, const std::string& store = "memory") {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const bool sync = seed % 2 == 0;
  const uint32_t workers = sync ? 4 : 3;  // means over 4 are exact
  Cluster cluster(seed, {.servers = 1 + static_cast<uint32_t>(seed % 3),
                         .workers = workers,
                         .steps = 15,
                         .sync = sync,
                         .faults = kStormyNetwork,
                         .store = store});
  const bool dies = seed % 3 != 0;
  if (dies)
    cluster.crash(static_cast<uint32_t>(seed % workers),
                  std::chrono::milliseconds(1) * (seed * 37 % 900));
  ASSERT_TRUE(cluster.run()) << cluster.log();
  float total = 0;
  for (uint32_t w = 0; w < workers; ++w) {
    SimulatedWorker& worker = cluster.worker(w);
    if (!worker.crashed()) {
      ASSERT_EQ(worker.error(), nullptr) << cluster.log();
      EXPECT_EQ(worker.acknowledged(), 15);
    }
    if (sync) continue;
    const float arrived = cluster.value(w);
    total += arrived;
    EXPECT_GE(arrived, static_cast<float>(worker.acknowledged()));
    EXPECT_LE(arrived, static_cast<float>(worker.sent()));
    if (!worker.crashed()) {
      EXPECT_EQ(arrived, 15.0F);
    }
  }
  // Every server takes a push whole: the shared row counts what the workers' own rows count,
  // where all of them live on one server.
  if (!sync && seed % 3 == 0) {
    EXPECT_EQ(cluster.value(kShared), total);
  }
  if (sync) {
    // The mean of ones over those that took part in a step is one, whoever they were.
    EXPECT_GE(cluster.value(kShared), 15.0F);
    EXPECT_EQ(cluster.value(kShared), std::round(cluster.value(kShared)));
  }
}

}  // namespace argosy::ps

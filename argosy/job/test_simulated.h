#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "argosy/job/transpiler.h"
#include "argosy/modes/communicator.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/serve.h"
#include "argosy/modes/server_calls.h"
#include "argosy/net/simulation.h"
#include "argosy/ps/server.h"

/// Jobs on a simulated network, each from one seed, whose sums can be counted.
namespace argosy {

using namespace std::chrono_literals;

inline constexpr size_t kDim = 2;
inline constexpr Key kShared = 1000;  // pushed by everyone
inline constexpr uint32_t kEpochs = 2;
inline constexpr int kSteps = 5;  // of an epoch
inline constexpr auto kLimit = 30min;

inline constexpr Faults kBadNetwork{.drop = 0.02,
                                    .duplicate = 0.03,
                                    .reorder = 0.05,
                                    .truncate = 0.002,
                                    .flip = 0.002,
                                    .cut = 0.005,
                                    .min_delay = 50us,
                                    .max_delay = 20ms};

inline std::string worker_host(uint32_t number) { return fmt::format("worker{}", number); }
inline std::string server_host(uint32_t number) { return fmt::format("server{}", number); }

// Milestones of an epoch: all have trained it, all have looked at the sums.
inline uint32_t trained(uint32_t epoch) { return 2 * epoch - 1; }
inline uint32_t looked(uint32_t epoch) { return 2 * epoch; }

/// Servers on a bad network, and where their workers are.
class SimulatedServers {
 public:
  SimulatedServers(uint64_t seed, ps::Placement placement, uint32_t workers, bool sync,
                   Durability durability = Durability::none)
      : placement_(std::move(placement)),
        workers_(workers),
        sync_(sync),
        durability_(durability),
        simulation_(seed, kBadNetwork),
        runs_(placement_.servers),
        settled_(placement_.servers),
        servers_(placement_.servers) {
    for (uint32_t i = 0; i < placement_.servers; ++i) start(i);
  }

  enum class Begin : uint8_t {
    anew,
    with_journals,  // of a job that was lost as a whole
    again,          // as a launcher does
  };
  std::shared_ptr<ps::Server> start(uint32_t number, Begin begin = Begin::anew) {
    const std::string host = server_host(number);
    if (begin == Begin::with_journals) settled_[number] = false;
    std::optional<ps::JournalOptions> journal;
    if (durability_ != Durability::none)
      journal = {.folder = host,
                 .durability = durability_,
                 .segment_bytes = size_t{1} << 13,
                 .recover = begin == Begin::again && settled_[number],
                 .offer = begin != Begin::anew && !(begin == Begin::again && settled_[number]),
                 .run = runs_[number]};
    servers_[number] =
        ps::Server::make(simulation_.host_env(host), placement_,
                         {.index = number,
                          .workers = workers_,
                          .sync = sync_,
                          .limits = {.grace = 20s, .away = 10min},
                          .log = [this](const std::string& line) { log_ += line + "\n"; },
                          .journal = journal,
                          .on_settled =
                              [this, number](std::optional<uint64_t> run) {
                                runs_[number] = run.value_or(runs_[number]);
                                settled_[number] = true;
                              }});
    simulation_.host(host).listen({host, 1}, servers_[number]->acceptor());
    return servers_[number];
  }
  /// Takes servers and workers away in one moment: the processes, or their machines where journals
  /// survive that.
  void cut_power() {
    const auto what =
        durability_ == Durability::fsync ? Simulation::Crash::machine : Simulation::Crash::process;
    log_ += "the power is cut\n";
    for (uint32_t i = 0; i < workers_; ++i) simulation_.crash(worker_host(i), what);
    for (uint32_t i = 0; i < placement_.servers; ++i) {
      simulation_.crash(server_host(i), what);
      servers_[i].reset();
    }
  }
  void lose_server(uint32_t number) {
    log_ += fmt::format("server {} is killed\n", number);
    simulation_.crash(server_host(number), durability_ == Durability::fsync
                                               ? Simulation::Crash::machine
                                               : Simulation::Crash::process);
    servers_[number].reset();
  }
  std::shared_ptr<ps::Client> connect(uint32_t worker, uint32_t restarts) {
    const std::string host = worker_host(worker);
    ps::ClientOptions options{.servers = {},
                              .worker = worker,
                              .workers = workers_,
                              .restarts = restarts,
                              .log = [this](const std::string& line) { log_ += line + "\n"; }};
    for (uint32_t i = 0; i < placement_.servers; ++i)
      options.servers.push_back({server_host(i), 1});
    return ps::Client::make(simulation_.host_env(host), simulation_.host(host), placement_,
                            std::move(options));
  }
  Simulation& simulation() { return simulation_; }
  const ps::Placement& placement() const { return placement_; }
  const std::string& log() const { return log_; }

 private:
  const ps::Placement placement_;
  const uint32_t workers_;
  const bool sync_;
  const Durability durability_;
  std::string log_;
  Simulation simulation_;
  std::vector<uint64_t> runs_;  // of the journals, by server
  std::vector<bool> settled_;   // by server: it knows whether it goes on
  std::vector<std::shared_ptr<ps::Server>> servers_;
};

/// Rows and parameters whose values are sums of their gradients.
inline Plan adding_plan() {
  Builder g;
  const Var y = g.input("y", {{-1, 1}});
  const Var rows = g.variable(
      {.name = "rows", .type = {{-1, kDim}, DType::f32}, .kind = VarKind::rows, .init = "zeros"});
  const Var index = g.variable({.name = "rows.index",
                                .type = {{-1, 1}, DType::i32},
                                .kind = VarKind::input,
                                .from = "index(rows, slot)"});
  const Var flat = g.apply("reshape", {g.apply("embedding", {rows, index})},
                           {{"shape", std::vector<int64_t>{-1, kDim}}});
  const Var score =
      g.apply("linear", {flat, g.param("w", {kDim, 1}, "zeros"), g.param("b", {1}, "zeros")}, {});
  return minimize(g, g.apply("mean", {g.apply("square_error", {score, y})}),
                  {.rule = "add", .learning_rate = "1"})
      .optimize_ops.program;
}

/// Every gradient of a batch is so much, everywhere.
inline void commit_gradients(const Plan& plan, Lane& lane, Batch& batch, float each) {
  std::vector<Tensor> values;
  for (const Edge& edge : plan.edges) {
    const size_t size = edge.kind == VarKind::param
                            ? plan.parameters[edge.target].elements
                            : batch.keys[0].size() * plan.tables[edge.target].dim;
    values.emplace_back(Shape{static_cast<int64_t>(size)});
    std::ranges::fill(values.back().as<float>(), each);
    lane.deliver(batch, edge, values.back());
  }
  lane.commit(batch);
}

/// Drives a communicator as a trainer does: batches are prepared ahead, gradients are ones.
class CountingTrainer {
 public:
  CountingTrainer(const Plan& plan, const Strategy& strategy, std::shared_ptr<ps::Client> client,
                  uint32_t number, uint32_t workers, int steps = kSteps)
      : plan_(plan),
        number_(number),
        steps_(static_cast<size_t>(steps)),
        // Servers of sync jobs take the mean.
        each_(mode(strategy.mode).sync ? static_cast<float>(workers) : 1.0F),
        communicator_(make_communicator(plan, strategy, {.servers = std::move(client)})) {
    for (int i = 0; i <= communicator_->lookahead(); ++i)
      lanes_.push_back({.lane = communicator_->make_lane(), .batch = {}});
  }

  /// So many batches of an epoch, the last ones.
  void train(uint32_t epoch, size_t steps) {
    size_t prepared = 0;
    communicator_->skip_passes(epoch - 1);
    communicator_->pass(Pass::begin);
    for (size_t step = 0; step < steps; ++step) {
      for (; prepared < steps && prepared < step + lanes_.size(); ++prepared) {
        OnItsLane& next = lanes_[prepared % lanes_.size()];
        fill(next.batch);
        next.lane->prepare(next.batch);
      }
      OnItsLane& own = lanes_[step % lanes_.size()];
      own.lane->fetch(own.batch);
      own.batch.trained = {.pass = epoch, .batches = steps_ - steps + step + 1};
      commit_gradients(plan_, *own.lane, own.batch, each_);
    }
    communicator_->pass(Pass::thread_done);
    communicator_->drain();
    communicator_->pass(Pass::end);
  }
  void leave() { communicator_->pass(Pass::leave); }

  /// Sums for the key that only this worker pushes, the key that all push, and the parameters.
  struct Sums {
    float own, shared, w, b;
    bool operator==(const Sums&) const = default;
  };
  /// Every value of each must be the same.
  Sums look() {
    Batch batch;
    fill(batch);
    communicator_->make_lane()->fetch(batch, ps::Purpose::inference);
    const auto rows = batch.feeds["rows"].as<float>(), w = batch.feeds["w"].as<float>();
    EXPECT_TRUE(rows[0] == rows[1] && rows[2] == rows[3] && w[0] == w[1]);
    return {rows[0], rows[2], w[0], batch.feeds["b"].as<float>()[0]};
  }

 private:
  struct OnItsLane {
    std::unique_ptr<Lane> lane;
    Batch batch;
  };
  void fill(Batch& batch) const {
    batch.size = 1;
    batch.keys = {{number_, kShared}};
    batch.grads.clear();
    batch.row_grads.clear();
  }

  const Plan& plan_;
  const uint32_t number_;
  const size_t steps_;  // of an epoch
  const float each_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<OnItsLane> lanes_;
};

/// Every way in which servers and workers train together.
inline std::vector<Strategy> server_strategies() {
  return {
      {.mode = "sync"},
      {.mode = "async"},
      {.mode = "async", .max_merge = 3, .send_queue = 1},
      {.mode = "half_async"},
      {.mode = "geo", .geo_step = 2, .geo_mean = false},
  };
}

}  // namespace argosy

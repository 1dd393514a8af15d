// Workers as blocking threads on a simulated network, each job from one seed: their pushes use the
// rule add, so they can be counted exactly, whichever workers are lost and come back.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "argosy/base/rng.h"
#include "argosy/job/test_simulated.h"

namespace argosy {
namespace {

constexpr size_t kParameter = 8;

/// Tables whose values are sums of what was pushed: the rule add, from zeros.
ps::Placement adding_placement(uint32_t servers) {
  const ps::ParameterSpec parameter{
      .name = "w", .elements = kParameter, .rule = "add", .learning_rate = "1"};
  const ps::TableSpec rows{.name = "rows", .dim = kDim, .rule = "add", .learning_rate = "1"};
  return ps::place({parameter}, {rows}, {0}, servers, {.min_block = 4});
}

/// Workers written as if each ran in a separate process.
class WorkersOfJob {
 public:
  virtual ~WorkersOfJob() = default;

  void crash_worker(uint32_t number, Env::Duration at, Env::Duration away) {
    servers_.simulation().env().schedule(at, [this, number, away] {
      if (finished_[number] || crashed_) return;
      servers_.simulation().crash(worker_host(number));
      crashed_ = true;
      ++coming_;
      servers_.simulation().env().schedule(away, [this, number] {
        --coming_;
        start_worker(number, 1);
      });
    });
  }
  /// Throws what a worker throws.
  void run() {
    while (std::ranges::find(finished_, false) != finished_.end()) {
      servers_.simulation().run(kLimit);
      servers_.simulation().run_until([&] { return coming_ == 0; }, kLimit);
    }
  }
  bool crashed() const { return crashed_; }
  const std::string& log() const { return servers_.log(); }

 protected:
  WorkersOfJob(uint64_t seed, ps::Placement placement, uint32_t workers, bool sync)
      : finished_(workers), servers_(seed, std::move(placement), workers, sync) {
    for (uint32_t i = 0; i < workers; ++i) start_worker(i, 0);
  }
  /// A process of a worker.
  virtual void work(uint32_t number, uint32_t restarts) = 0;
  SimulatedServers& servers() { return servers_; }

 private:
  void start_worker(uint32_t number, uint32_t restarts) {
    const std::string host = worker_host(number);
    servers_.simulation().start_thread(host, host, [this, number, restarts] {
      work(number, restarts);
      finished_[number] = true;
    });
  }

  std::vector<bool> finished_;  // by worker
  bool crashed_ = false;
  int coming_ = 0;
  SimulatedServers servers_;
};

struct JobSpec {
  uint32_t servers = 1, workers = 2;
  bool sync = false;
  bool loses_worker = false;
  /// In the middle of an epoch's end a server is lost, and comes back with what was saved.
  bool loses_server = false;
};

/// Exchanges and milestones, by hand.
class BlockingJob final : public WorkersOfJob {
 public:
  BlockingJob(uint64_t seed, const JobSpec& spec)
      : WorkersOfJob(seed, adding_placement(spec.servers), spec.workers, spec.sync), spec_(spec) {}

 private:
  /// State of a worker's process.
  struct Worker {
    uint32_t number = 0;
    std::shared_ptr<ps::Client> client;
    std::vector<std::vector<Key>> keys;
    std::shared_ptr<ps::KeyLists> lists;  // of the last pull
    std::vector<float> rows = std::vector<float>(2 * kDim);
    std::vector<float> parameter = std::vector<float>(kParameter);
  };

  void work(uint32_t number, uint32_t restarts) override {
    Worker worker{.number = number,
                  .client = servers().connect(number, restarts),
                  .keys = {{number, kShared}},
                  .lists = nullptr};
    const auto from = restarts > 0 ? call(*worker.client, 0, ps::verbs::Standing{})
                                   : ps::verbs::Standing::Result{};
    const Trained done = restarts > 0
                             ? std::ranges::max(call_all(*worker.client, ps::verbs::Progress{}))
                             : Trained();
    for (uint32_t epoch = 1; epoch <= kEpochs; ++epoch) {
      if (trained(epoch) > from.milestone) {
        train(worker, epoch, done.pass == epoch ? done.batches : 0);
        meet(worker, trained(epoch));
      }
      if (looked(epoch) > from.milestone) {
        look(worker, epoch);
        if (spec_.loses_server && number == 0) lose_server(worker, epoch);
        meet(worker, looked(epoch));
      }
    }
    call_all(*worker.client, ps::verbs::Leave{});
    worker.client->close();
  }

  /// Behind `done` batches that an earlier process has pushed.
  void train(Worker& worker, uint32_t epoch, uint64_t done) {
    if (spec_.sync) call_all(*worker.client, ps::verbs::Join{epoch});
    for (uint64_t batch = done + 1; batch <= kSteps; ++batch)
      push(worker, {.pass = epoch, .batches = batch});
    if (spec_.sync) call_all(*worker.client, ps::verbs::Pause{epoch});
  }
  /// Servers of a sync job take the mean.
  void push(Worker& worker, const Trained& trained) {
    const float each = spec_.sync ? static_cast<float>(spec_.workers) : 1.0F;
    const std::vector<float> rows(2 * kDim, each), parameter(kParameter, each);
    auto exchange = pull_of(worker);
    const auto lists = std::exchange(worker.lists, exchange->lists);
    exchange->pushes.push_back(
        {lists != nullptr ? lists
                          : std::make_shared<ps::KeyLists>(servers().placement(), worker.keys),
         {rows}});
    exchange->dense.emplace_back(parameter);
    exchange->ends_step = true;
    exchange->trained = trained;
    begin(*worker.client, exchange)->wait();
  }
  std::shared_ptr<ps::Exchange> pull_of(Worker& worker) {
    auto exchange = std::make_shared<ps::Exchange>();
    exchange->lists = std::make_shared<ps::KeyLists>(servers().placement(), worker.keys);
    exchange->rows.emplace_back(worker.rows);
    exchange->parameters.emplace_back(worker.parameter);
    return exchange;
  }

  /// Everybody has trained the epoch, nobody trains the next one.
  void look(Worker& worker, uint32_t epoch) {
    const auto exchange = pull_of(worker);
    exchange->inference = true;
    begin(*worker.client, exchange)->wait();
    const auto own = static_cast<float>(kSteps * epoch);
    const float all = own * static_cast<float>(spec_.workers);
    const std::vector<float> rows{own, own, all, all}, parameter(kParameter, all);
    EXPECT_EQ(worker.rows, rows) << "worker " << worker.number << ", epoch " << epoch;
    EXPECT_EQ(worker.parameter, parameter) << "worker " << worker.number << ", epoch " << epoch;
  }
  void meet(Worker& worker, uint32_t number) {
    const std::string mine = fmt::format("{} at {}", worker.number, number);
    const auto parts = milestone(*worker.client, number, "of a test",
                                 std::as_bytes(std::span(mine.data(), mine.size())));
    // It may be over for one that was lost, or for a server, which then answer with nothing.
    if (spec_.loses_worker || spec_.loses_server) return;
    ASSERT_EQ(parts.size(), spec_.workers);
    for (uint32_t i = 0; i < spec_.workers; ++i)
      EXPECT_EQ(text_of(parts[i]), fmt::format("{} at {}", i, number));
    gather(*worker.client, "test", number, "of a test", {});
  }
  /// While the others wait for this worker.
  void lose_server(Worker& worker, uint32_t epoch) {
    const uint32_t lost = epoch % spec_.servers;
    const auto saved = call(*worker.client, lost, ps::verbs::Save{epoch, "saves"});
    const auto parameters = call(*worker.client, lost, ps::verbs::ReadParameters{});
    servers().simulation().crash(server_host(lost));
    const auto server = servers().start(lost);
    server->shard().load(server->env(), "saves", saved.files);
    server->shard().set_parameters(parameters.values);
    server->set_step(parameters.step);
  }

  const JobSpec spec_;
};

TEST(SimulatedWorkers, SumsAreExactOnABadNetwork) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    BlockingJob job(seed, {.servers = 1 + static_cast<uint32_t>(seed % 3),
                           .workers = seed % 2 == 0 ? 2U : 4U,
                           .sync = seed % 4 < 2});
    ASSERT_NO_THROW(job.run()) << job.log();
  }
}

TEST(SimulatedWorkers, OneThatComesBackGoesOnWhereItWas) {
  int crashes = 0;
  for (uint64_t seed = 40; seed < 80; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const RandomStream random(seed);
    const uint32_t workers = 2 + static_cast<uint32_t>(seed % 2);
    BlockingJob job(seed,
                    {.servers = 1, .workers = workers, .sync = seed % 4 < 2, .loses_worker = true});
    job.crash_worker(static_cast<uint32_t>(random.below(0, workers)), 1ms * random.below(1, 2000),
                     1ms * random.below(2, 5000));
    ASSERT_NO_THROW(job.run()) << job.log();
    crashes += job.crashed() ? 1 : 0;
  }
  EXPECT_GT(crashes, 20);
}

TEST(SimulatedWorkers, AServerThatComesBackFromASaveHasAll) {
  for (uint64_t seed = 80; seed < 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    BlockingJob job(
        seed, {.servers = 1 + static_cast<uint32_t>(seed % 2), .workers = 3, .loses_server = true});
    ASSERT_NO_THROW(job.run()) << job.log();
  }
}

/// Outlives the threads of a job.
const Plan& shared_plan() {
  static const Plan plan = adding_plan();
  return plan;
}

/// Whole communicators, driven as a trainer does: batches are prepared ahead, gradients are ones. A
/// restarted worker repeats everything, and pushes only what the servers do not have.
class CommunicatorJob final : public WorkersOfJob {
 public:
  CommunicatorJob(uint64_t seed, const Strategy& strategy, uint32_t servers, uint32_t workers)
      : WorkersOfJob(seed, placement_of(shared_plan(), strategy, servers, {.min_block = 1}),
                     workers, strategy.mode == "sync"),
        strategy_(strategy),
        workers_(workers) {}

 private:
  void work(uint32_t number, uint32_t restarts) override {
    const auto client = servers().connect(number, restarts);
    uint64_t over = 0;  // gathers
    Wires wires{.servers = client};
    if (restarts > 0) {
      over = call(*client, 0, ps::verbs::Standing{"test"}).gather;
      wires.replays = std::ranges::max(call_all(*client, ps::verbs::Progress{}));
    }
    const auto communicator = make_communicator(plan_, strategy_, wires);
    std::vector<OnItsLane> lanes;
    for (int i = 0; i <= communicator->lookahead(); ++i)
      lanes.push_back({.lane = communicator->make_lane(), .batch = {}});
    for (uint32_t epoch = 1; epoch <= kEpochs; ++epoch) {
      train(*communicator, lanes, number, epoch);
      gather(*client, "test", 2 * epoch - 1, "trained", {});
      if (2 * epoch > over) look(*communicator, number, epoch);
      gather(*client, "test", 2 * epoch, "looked", {});
    }
    communicator->pass(Pass::leave);
  }
  struct OnItsLane {
    std::unique_ptr<Lane> lane;
    Batch batch;
  };

  void fill(Batch& batch, uint32_t number) const {
    batch.size = 1;
    batch.keys = {{number, kShared}};
    batch.grads.clear();
    batch.row_grads.clear();
  }
  void train(Communicator& communicator, std::vector<OnItsLane>& lanes, uint32_t number,
             uint32_t epoch) {
    size_t prepared = 0;
    communicator.pass(Pass::begin);
    for (size_t step = 0; step < kSteps; ++step) {
      for (; prepared < kSteps && prepared < step + lanes.size(); ++prepared) {
        OnItsLane& next = lanes[prepared % lanes.size()];
        fill(next.batch, number);
        next.lane->prepare(next.batch);
      }
      OnItsLane& own = lanes[step % lanes.size()];
      own.lane->fetch(own.batch);
      own.batch.trained = {.pass = epoch, .batches = step + 1};
      own.batch.replayed = own.batch.trained <= communicator.replays();
      // Servers of sync jobs take the mean.
      commit_gradients(plan_, *own.lane, own.batch,
                       mode(strategy_.mode).sync ? static_cast<float>(workers_) : 1.0F);
    }
    communicator.pass(Pass::thread_done);
    communicator.drain();
    communicator.pass(Pass::end);
  }
  /// Everybody has trained the epoch, nobody trains the next one.
  void look(Communicator& communicator, uint32_t number, uint32_t epoch) {
    Batch batch;
    fill(batch, number);
    communicator.make_lane()->fetch(batch, ps::Purpose::inference);
    const auto own = static_cast<float>(kSteps * epoch);
    const float all = own * static_cast<float>(workers_);
    const auto values = [&](const char* name) {
      const auto span = batch.feeds[name].as<float>();
      return std::vector<float>(span.begin(), span.end());
    };
    EXPECT_EQ(values("rows"), (std::vector<float>{own, own, all, all})) << "worker " << number;
    EXPECT_EQ(values("w"), std::vector<float>(kDim, all)) << "worker " << number;
    EXPECT_EQ(values("b"), std::vector<float>(1, all)) << "worker " << number;
  }

  const Strategy strategy_;
  const uint32_t workers_;
  const Plan& plan_ = shared_plan();
};

const std::vector<Strategy> kStrategies = {
    {.mode = "sync"},
    {.mode = "async"},
    {.mode = "async", .max_merge = 3, .send_queue = 1},
    {.mode = "half_async"},
    {.mode = "geo", .geo_step = 2, .geo_mean = false},
};

/// Batches pushed before the loss count once, and so does the rest of the worker's data.
TEST(SimulatedWorkers, EveryModeCountsExactlyWhereAWorkerIsLost) {
  for (const Strategy& strategy : kStrategies) {
    int crashes = 0;
    for (uint64_t seed = 100; seed < 180; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", strategy.mode, seed));
      const RandomStream random(seed);
      CommunicatorJob job(seed, strategy, 1, 2);
      job.crash_worker(static_cast<uint32_t>(random.below(0, 2)), 1ms * random.below(1, 1500),
                       1ms * random.below(2, 5000));
      ASSERT_NO_THROW(job.run()) << job.log();
      crashes += job.crashed() ? 1 : 0;
    }
    EXPECT_GT(crashes, 20) << strategy.mode;
  }
}

TEST(SimulatedWorkers, EveryModeOfServersCountsExactly) {
  for (const Strategy& strategy : kStrategies) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", strategy.mode, seed));
      CommunicatorJob job(seed, strategy, 1 + static_cast<uint32_t>(seed % 2), 2);
      ASSERT_NO_THROW(job.run()) << job.log();
    }
  }
}

}  // namespace
}  // namespace argosy

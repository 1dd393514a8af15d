// Training by servers and workers over loopback TCP, all in this process: modes against local
// training, saving and loading, workers that leave early.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/data/file_dataset.h"
#include "argosy/modes/serve.h"
#include "argosy/modes/server_calls.h"
#include "argosy/nn/layers.h"
#include "argosy/train/test_outcomes.h"
#include "argosy/train/trainer.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

constexpr uint64_t kIds = 200;
constexpr size_t kBatch = 16, kBatches = 24;  // of each worker

/// Two tables over the same slots, and layers large enough to be cut.
ModelOutputs model(Builder& g) {
  const std::vector<std::string> slots = {"a", "b"};
  const Var label = g.input("label", {{-1, 1}});
  const Var wide = nn::sum_slots(nn::embedding(g, slots, "wide", 1), 1);
  const Var rows = nn::embedding(g, slots, "rows", 4, {.init = "uniform(-0.3, 0.3)"});
  const Var x = nn::concat(std::array{rows, g.input("x", {{-1, 2}})});
  const Var hidden = nn::mlp(x, std::array<int64_t, 2>{32, 16}, "relu", "fc");
  const Var logit = wide + nn::linear(hidden, 1, "out");
  const Var predict = nn::sigmoid(logit);
  return {.loss = nn::logistic_loss(logit, label),
          .meters = {{"auc", "auc", predict, label}},
          .predictions = {{"predict", predict}}};
}

const std::vector<SlotSpec> kSlots = {{"a", SlotKind::ids, 1},
                                      {"b", SlotKind::ids, 1},
                                      {"x", SlotKind::floats, 2},
                                      {"label", SlotKind::floats, 1}};

std::string instances(uint64_t first, uint64_t rows) {
  const RandomStream random(11);
  std::string text;
  for (uint64_t i = first; i < first + rows; ++i) {
    const uint64_t at = i * 8;
    const uint64_t a = random.below(at, kIds), b = random.below(at + 1, kIds);
    const double score = (a % 3 == 0 ? 1.5 : -1.0) + ((a + b) % 2 == 0 ? 1.0 : -1.0);
    const bool click = random.uniform(at + 3) < 1 / (1 + std::exp(-score));
    text += "1 " + std::to_string(a) + " 1 " + std::to_string(b) + " 2 " +
            std::to_string(random.normal(at + 2)) + " 0.5 1 " + (click ? "1" : "0") + "\n";
  }
  return text;
}

class DistributedTest : public testing::Test {
 protected:
  DistributedTest() {
    for (uint64_t i = 0; i < 3; ++i)
      files_.push_back(folder_.write("part-" + std::to_string(i),
                                     instances(i * kBatch * kBatches, kBatch * kBatches)));
  }

  TrainerOptions options(const std::string& rule, Strategy strategy) const {
    TrainerOptions result;
    result.optimizer = {.rule = rule, .learning_rate = "0.02"};
    result.strategy = std::move(strategy);
    result.seed = 5;
    return result;
  }
  std::unique_ptr<Dataset> data(const Plan& plan, int worker, size_t batch = kBatch) const {
    return std::make_unique<QueueDataset>(
        plan.layout,
        FileOptions{
            .files = {files_[static_cast<size_t>(worker)]}, .slots = kSlots, .batch_size = batch});
  }

  /// One process that takes the batches of all workers in turn.
  Outcome train_alone(const std::string& rule, int workers) {
    Trainer trainer(*env_, model, options(rule, {.accumulate = workers}));
    std::vector<std::unique_ptr<Dataset>> sets;
    for (int i = 0; i < workers; ++i) sets.push_back(data(trainer.plan(), i));
    InTurn all(std::move(sets));
    std::vector<double> losses;
    trainer.fit(all, {.on_step =
                          [&](const Progress& progress) {
                            losses.push_back(progress.metric("loss"));
                            return Next::go_on;
                          },
                      .show = nullptr});
    Outcome result = outcome_of(trainer);
    result.losses = std::move(losses);
    return result;
  }

  /// Serves in threads until all workers have left.
  class Servers {
   public:
    Servers(Env& env, const TrainerOptions& options, uint32_t servers, uint32_t workers)
        : placement_(placement_of(record(model, options).plan, options.strategy, servers,
                                  {.min_block = 64})) {
      role_ = {.kind = RoleKind::worker, .worker_num = static_cast<int>(workers)};
      for (uint32_t i = 0; i < servers; ++i) {
        servers_.push_back(ps::Server::make(env, placement_,
                                            {.index = i,
                                             .workers = workers,
                                             .sync = options.strategy.mode == "sync",
                                             .threads = 2,
                                             .limits = {.grace = std::chrono::milliseconds(600)}}));
        role_.servers.push_back(transport_->listen({"127.0.0.1", 0}, servers_.back()->acceptor()));
      }
    }
    Role worker(int index) const {
      Role role = role_;
      role.index = index;
      return role;
    }
    const ps::Placement& placement() const { return placement_; }
    ps::Server& server(size_t i) { return *servers_[i]; }
    void wait() {
      for (const auto& server : servers_) server->wait();
    }

   private:
    ps::Placement placement_;
    Role role_;
    std::vector<std::shared_ptr<ps::Server>> servers_;
    std::unique_ptr<Transport> transport_ = tcp_transport();
  };

  /// One worker with its own wires.
  struct Worker {
    Worker(Env& env, const Servers& servers, TrainerOptions options, int index)
        : transport(tcp_transport(worker_links(options.strategy))) {
      const Wires wires = connect_servers(env, *transport, servers.placement(),
                                          servers.worker(index), options.strategy);
      client = wires.servers;
      trainer.emplace(env, model, options, wires);
    }
    std::unique_ptr<Transport> transport;
    std::shared_ptr<ps::Client> client;
    std::optional<Trainer> trainer;
  };

  Outcome train_together(const std::string& rule, const Strategy& strategy, uint32_t servers,
                         int workers, int epochs = 1) {
    const TrainerOptions setup = options(rule, strategy);
    Servers cluster(*env_, setup, servers, static_cast<uint32_t>(workers));
    Outcome result;
    std::vector<std::vector<double>> losses(static_cast<size_t>(workers));
    std::vector<std::jthread> threads;
    for (int i = 0; i < workers; ++i) {
      threads.emplace_back([&, i] {
        Worker worker(*env_, cluster, setup, i);
        const auto batches = data(worker.trainer->plan(), i);
        worker.trainer->fit(
            *batches, {.epochs = epochs,
                       .on_step =
                           [&, i](const Progress& progress) {
                             losses[static_cast<size_t>(i)].push_back(progress.metric("loss"));
                             return Next::go_on;
                           },
                       .show = nullptr});
        gather(*worker.client, "test", 1, "all have trained", {});
        if (i == 0) result = outcome_of(*worker.trainer);
        worker.trainer->leave();
      });
    }
    threads.clear();
    cluster.wait();
    for (size_t step = 0; step < losses[0].size(); ++step) {
      double sum = 0;
      for (const auto& of_worker : losses) sum += of_worker.at(step);
      result.losses.push_back(sum / workers);
    }
    return result;
  }

  TestFolder folder_;
  std::unique_ptr<Env> env_ = real_env();
  std::vector<std::string> files_;
};

struct SyncCase {
  const char* rule;
  int workers;
  uint32_t servers;
};

class SyncTest : public DistributedTest, public testing::WithParamInterface<SyncCase> {};

TEST_P(SyncTest, EqualsOneProcessThatAccumulates) {
  const auto [rule, workers, servers] = GetParam();
  expect_same_bits(train_together(rule, {.mode = "sync"}, servers, workers),
                   train_alone(rule, workers));
}

std::vector<SyncCase> sync_cases() {
  std::vector<SyncCase> cases;
  for (const char* rule : {"sgd", "adagrad", "adam"})
    for (int workers = 1; workers <= 3; ++workers)
      for (uint32_t servers = 1; servers <= 3; ++servers) cases.push_back({rule, workers, servers});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Modes, SyncTest, testing::ValuesIn(sync_cases()), [](const auto& info) {
  return std::string(info.param.rule) + "_" + std::to_string(info.param.workers) + "_workers_" +
         std::to_string(info.param.servers) + "_servers";
});

TEST_F(DistributedTest, SyncStepsLikeOneProcessWithTheWholeBatch) {
  constexpr int kWorkers = 3;
  std::string whole;
  for (uint64_t step = 0; step < kBatches; ++step)
    for (uint64_t worker = 0; worker < kWorkers; ++worker)
      whole += instances((worker * kBatches + step) * kBatch, kBatch);
  files_.push_back(folder_.write("whole", whole));
  for (const char* rule : {"sgd", "adagrad", "adam"}) {
    Trainer trainer(*env_, model, options(rule, {}));
    const auto batches = data(trainer.plan(), 3, kBatch * kWorkers);
    std::vector<double> losses;
    trainer.fit(*batches, {.on_step =
                               [&](const Progress& progress) {
                                 losses.push_back(progress.metric("loss"));
                                 return Next::go_on;
                               },
                           .show = nullptr});
    const Outcome together = train_together(rule, {.mode = "sync"}, 2, kWorkers);
    const double tolerance = std::string(rule) == "adam" ? 1e-4 : 1e-5;
    for (size_t step = 0; step < 20; ++step)
      EXPECT_NEAR(together.losses[step], losses[step], tolerance * losses[step])
          << rule << " step " << step;
  }
}

/// The mean loss of the last batches of a long run.
double end_of(const Outcome& outcome) {
  double sum = 0;
  for (size_t i = outcome.losses.size() - kBatches; i < outcome.losses.size(); ++i)
    sum += outcome.losses[i];
  return sum / kBatches;
}

TEST_F(DistributedTest, EveryModeLearns) {
  constexpr int kEpochs = 8;
  const Outcome first = train_together("adam", {.mode = "sync"}, 1, 2);
  const std::vector<Strategy> strategies = {
      {.mode = "sync"},
      {.mode = "async"},
      {.mode = "async", .threads = 2, .max_merge = 2},
      {.mode = "half_async", .threads = 2},
      {.mode = "geo", .geo_step = 5},
  };
  for (const Strategy& strategy : strategies) {
    const Outcome outcome = train_together("adam", strategy, 2, 2, kEpochs);
    EXPECT_LT(end_of(outcome), 0.8 * end_of(first)) << strategy.mode;
    EXPECT_EQ(outcome.tables.size(), 2U);
    EXPECT_GT(outcome.tables[0].keys.size(), 150U) << strategy.mode;
  }
}

TEST_F(DistributedTest, AWorkerWithLessDataOrAWorkerThatVanishesKeepsNobodyWaiting) {
  files_[1] = folder_.write("short", instances(5000, kBatch * 5));
  const TrainerOptions setup = options("adam", {.mode = "sync"});
  Servers cluster(*env_, setup, 2, 3);
  std::vector<uint64_t> steps(3);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      Worker worker(*env_, cluster, setup, i);
      const auto batches = data(worker.trainer->plan(), i);
      FitOptions fit{.epochs = 2, .show = nullptr};
      // One dies in the middle of its first epoch, without a word.
      if (i == 2)
        fit.on_step = [](const Progress& p) { return p.step == 9 ? Next::stop : Next::go_on; };
      if (i == 2) fit.epochs = 1;
      const Progress progress = worker.trainer->fit(*batches, fit);
      steps[static_cast<size_t>(i)] = progress.step;
      if (i != 2) worker.trainer->leave();
    });
  }
  threads.clear();
  cluster.wait();
  EXPECT_EQ(steps, (std::vector<uint64_t>{kBatches, 5, 9}));
}

TEST_F(DistributedTest, MetricsCountWhatATrainerAndItsServersDo) {
  const TrainerOptions setup = options("adam", {.mode = "sync"});
  Servers cluster(*env_, setup, 1, 1);
  Worker worker(*env_, cluster, setup, 0);
  fit(*worker.trainer, *data(worker.trainer->plan(), 0), 1);
  const auto value = [](const Metrics& metrics, const std::string& name) {
    for (const MetricSample& sample : metrics.samples())
      if (sample.spec.name == name) return sample.value;
    ADD_FAILURE() << "nobody counts " << name;
    return -1.0;
  };
  const Metrics& mine = worker.trainer->metrics();  // the trainer's and its client's
  const Metrics& theirs = cluster.server(0).metrics();
  EXPECT_EQ(value(mine, "argosy_trainer_steps_total"), kBatches);
  EXPECT_EQ(value(mine, "argosy_trainer_examples_total"), kBatches * kBatch);
  EXPECT_GT(value(mine, "argosy_trainer_reading_seconds_total"), 0);
  EXPECT_GT(value(mine, "argosy_trainer_waiting_seconds_total"), 0);
  EXPECT_GT(value(mine, "argosy_trainer_computing_seconds_total"), 0);
  EXPECT_NEAR(value(mine, "argosy_trainer_step_seconds"),
              value(mine, "argosy_trainer_waiting_seconds_total") +
                  value(mine, "argosy_trainer_computing_seconds_total"),
              1e-6);
  EXPECT_EQ(value(mine, "argosy_client_exchanges_total"), kBatches + 1);
  EXPECT_EQ(value(theirs, "argosy_server_exchanges_total"), kBatches + 1);
  EXPECT_EQ(value(theirs, "argosy_server_received_bytes_total"),
            value(mine, "argosy_client_sent_bytes_total"));
  EXPECT_EQ(value(theirs, "argosy_server_sent_bytes_total"),
            value(mine, "argosy_client_received_bytes_total"));
  // Two tables over the keys of two slots: at most two rows of each for an instance.
  EXPECT_EQ(value(theirs, "argosy_server_rows_pulled_total"),
            value(theirs, "argosy_server_rows_pushed_total"));
  EXPECT_GT(value(theirs, "argosy_server_rows_pulled_total"), 2 * kBatches);
  EXPECT_LE(value(theirs, "argosy_server_rows_pulled_total"), 2 * 2 * kBatch * kBatches);
  worker.trainer->leave();
  cluster.wait();

  std::set<std::string> counted, described;
  for (const Metrics* metrics : {&mine, &theirs})
    for (const MetricSample& sample : metrics->samples()) counted.insert(sample.spec.name);
  std::ifstream page(std::string(ARGOSY_SOURCE_DIR) + "/docs/reference/metrics.md");
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| `")) described.insert(line.substr(3, line.find('`', 3) - 3));
  EXPECT_EQ(counted, described) << "docs/reference/metrics.md";
}

TEST_F(DistributedTest, SingleStepsAreSynchronousToo) {
  const TrainerOptions setup = options("adam", {.mode = "sync"});
  Servers cluster(*env_, setup, 2, 2);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      Worker worker(*env_, cluster, setup, i);
      const auto batches = data(worker.trainer->plan(), i);
      batches->begin_epoch(1);
      worker.trainer->communicator().pass(Pass::begin);
      Batch batch;
      const Env::Time start = env_->now();
      while (batches->next(batch)) worker.trainer->step(batch);
      worker.trainer->communicator().pass(Pass::end);
      // A pull queued after a held push would wait for the next ping, a second later.
      EXPECT_LT(env_->now() - start, std::chrono::seconds(10));
      worker.trainer->leave();
    });
  }
  threads.clear();
  cluster.wait();
  EXPECT_EQ(cluster.server(0).step(), kBatches);
}

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Whole rows, with the counts and sums of the side columns: the files of saves are the same.
TEST_F(DistributedTest, SideColumnsReachTheTablesOfServersAsTheyReachLocalOnes) {
  for (const char* entry : {"count_filter(3)", "show_click(x_show, label)", "show_click"}) {
    SCOPED_TRACE(entry);
    TrainerOptions setup = options("adam", {.mode = "sync"});
    setup.tables["rows"].entry = entry;
    const std::string alone = folder_.path() + "/alone", together = folder_.path() + "/together";
    const auto shown = [&](const Plan& plan) {
      std::vector<SlotSpec> slots = kSlots;
      slots.push_back({"x_show", SlotKind::floats, 1});
      std::string text = instances(0, kBatch * kBatches), with_show;
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);)
        with_show += line + " 1 " + std::to_string(1 + with_show.size() % 3) + "\n";
      return std::make_unique<QueueDataset>(
          plan.layout,
          FileOptions{
              .files = {folder_.write("shown", with_show)}, .slots = slots, .batch_size = kBatch});
    };
    {
      TrainerOptions local = setup;
      local.strategy = {};
      Trainer trainer(*env_, model, local);
      const auto batches = shown(trainer.plan());
      trainer.fit(*batches, {.show = nullptr});
      trainer.save(alone);
    }
    Servers cluster(*env_, setup, 1, 1);
    Worker worker(*env_, cluster, setup, 0);
    const auto batches = shown(worker.trainer->plan());
    worker.trainer->fit(*batches, {.show = nullptr});
    worker.trainer->save(together);
    worker.trainer->leave();
    cluster.wait();
    const std::string expected = content(alone + "/rows.1.rows");
    EXPECT_GT(expected.size(), 1000U);
    EXPECT_TRUE(expected == content(together + "/rows.1.0-of-1.rows"));
    std::filesystem::remove_all(alone);
    std::filesystem::remove_all(together);
  }
}

TEST_F(DistributedTest, ASaveIsLoadedByAnyNumberOfServersAndByNone) {
  const TrainerOptions setup = options("adam", {.mode = "async"});
  const std::string saved = folder_.path() + "/model";
  Outcome before;
  {
    Servers cluster(*env_, setup, 2, 1);
    Worker worker(*env_, cluster, setup, 0);
    const auto batches = data(worker.trainer->plan(), 0);
    worker.trainer->fit(*batches, {.show = nullptr});
    worker.trainer->save(saved, {.epoch = 2});
    before = outcome_of(*worker.trainer);
    worker.trainer->leave();
    cluster.wait();
  }
  for (const uint32_t servers : {1U, 3U}) {
    Servers cluster(*env_, setup, servers, 1);
    Worker worker(*env_, cluster, setup, 0);
    EXPECT_EQ(worker.trainer->load(saved).epoch, 2);
    expect_same_bits(outcome_of(*worker.trainer), before);
    size_t rows = 0;
    for (uint32_t i = 0; i < servers; ++i) rows += cluster.server(i).shard().table(0).size();
    EXPECT_EQ(rows, before.tables[0].keys.size());
    worker.trainer->leave();
    cluster.wait();
  }
  Trainer local(*env_, model, options("adam", {}));
  EXPECT_EQ(local.load(saved).epoch, 2);
  expect_same_bits(outcome_of(local), before);
}

}  // namespace
}  // namespace argosy

// Training with sparse tables: graph modes, threads, chunks, resuming.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <filesystem>

#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/data/file_dataset.h"
#include "argosy/nn/layers.h"
#include "argosy/train/predictor.h"
#include "argosy/train/trainer.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

constexpr uint64_t kRows = 3000, kIds = 40;

/// Two tables over the same slots, one of them looked up a second time, pooled; and a state.
ModelOutputs model(Builder& g) {
  const std::vector<std::string> slots = {"a", "b"};
  const std::vector<std::string> bag = {"bag"};
  const Var label = g.input("label", {{-1, 1}});
  const Var wide = nn::sum_slots(nn::embedding(g, slots, "wide", 1), 1);
  const Var factors = nn::embedding(g, slots, "factors", 4, {.init = "uniform(-0.3, 0.3)"});
  const Var pooled = nn::embedding(g, bag, "bags", 4, {.pool = "mean", .padding = 3});
  const Var h =
      nn::batch_norm(nn::concat(std::array{factors, pooled, g.input("x", {{-1, 2}})}), "norm");
  const Var logit = wide + nn::fm_pairwise(factors, 4) +
                    nn::linear(nn::linear(h, 16, "fc", {.activation = "relu"}), 1, "out");
  const Var predict = nn::sigmoid(logit);
  return {.loss = nn::logistic_loss(logit, label),
          .meters = {{"auc", "auc", predict, label}, {"logloss", "logloss", predict, label}},
          .predictions = {{"predict", predict}}};
}

const std::vector<SlotSpec> kSlots = {{"a", SlotKind::ids, 1},
                                      {"b", SlotKind::ids, 1},
                                      {"bag", SlotKind::ids, 0, EmptySlot::empty},
                                      {"x", SlotKind::floats, 2},
                                      {"label", SlotKind::floats, 1}};

/// Clicks that depend on a, on b, and on both together.
std::string instances(uint64_t first, uint64_t rows) {
  const RandomStream random(11);
  std::string text;
  for (uint64_t i = first; i < first + rows; ++i) {
    const uint64_t at = i * 16;
    const uint64_t a = random.below(at, kIds), b = random.below(at + 1, kIds);
    const double x = random.normal(at + 2);
    const double score = (a % 3 == 0 ? 1.2 : -0.8) + ((a + b) % 2 == 0 ? 1.0 : -1.0) + 0.5 * x;
    const bool click = random.uniform(at + 3) < 1 / (1 + std::exp(-score));
    text += "1 " + std::to_string(a) + " 1 " + std::to_string(b) + " ";
    const uint64_t n = random.below(at + 4, 4);
    text += std::to_string(n);
    for (uint64_t k = 0; k < n; ++k) text += " " + std::to_string(random.below(at + 5 + k, 6));
    text += " 2 " + std::to_string(x) + " 0.5 1 " + (click ? "1" : "0") + "\n";
  }
  return text;
}

class SparseTrainerTest : public testing::Test {
 public:
  SparseTrainerTest() {
    for (uint64_t f = 0; f < 3; ++f)
      files_.push_back(
          folder_.write("part-" + std::to_string(f), instances(f * kRows / 3, kRows / 3)));
    test_files_ = {folder_.write("test", instances(kRows, 1000))};
  }

 protected:
  Trainer make(int threads = 1, int chunks = 0, GraphMode graph = GraphMode::recorded) {
    TrainerOptions options;
    options.optimizer = {.rule = "adam", .learning_rate = "0.01"};
    options.tables = {{"wide", {.rule = "ftrl", .learning_rate = "0.05"}}};
    options.strategy.threads = threads;
    options.chunks = chunks;
    options.graph = graph;
    options.seed = 3;
    return Trainer(*env_, model, options);
  }
  std::unique_ptr<Dataset> data(const Trainer& trainer, size_t threads = 1) const {
    FileOptions options;
    options.files = files_;
    options.slots = kSlots;
    options.batch_size = 50;
    options.threads = threads;
    return std::make_unique<InMemoryDataset>(trainer.plan().layout, options, true);
  }
  std::unique_ptr<Dataset> test_data(const Trainer& trainer) const {
    FileOptions options;
    options.files = test_files_;
    options.slots = kSlots;
    options.batch_size = 128;
    return std::make_unique<QueueDataset>(trainer.plan().layout, options);
  }
  double test_auc(Trainer& trainer) const { return trainer.evaluate(*test_data(trainer))[1].value; }
  /// Losses of all steps, then the test metrics: any difference in any bit shows.
  std::vector<double> history(Trainer& trainer, int epochs, size_t readers = 1) const {
    std::vector<double> seen;
    FitOptions options;
    options.epochs = epochs;
    options.show = nullptr;
    options.on_step = [&](const Progress& p) {
      seen.push_back(p.metric("loss"));
      return Next::go_on;
    };
    trainer.fit(*data(trainer, readers), options);
    for (const Metric& metric : trainer.evaluate(*test_data(trainer))) seen.push_back(metric.value);
    return seen;
  }

  TestFolder folder_;
  std::vector<std::string> files_, test_files_;
  std::unique_ptr<Env> env_ = real_env();
};

TEST_F(SparseTrainerTest, LearnsCrossedIds) {
  Trainer trainer = make();
  history(trainer, 6);
  EXPECT_GT(test_auc(trainer), 0.78);
}

TEST_F(SparseTrainerTest, BothGraphModesGiveTheSameBits) {
  Trainer recorded = make(), eager = make(1, 0, GraphMode::eager);
  EXPECT_EQ(history(recorded, 1), history(eager, 1));
}

TEST_F(SparseTrainerTest, ChunksGiveTheSameBitsForAnyNumberOfThreads) {
  Trainer one = make(1, 4), two = make(2, 4), five = make(5, 4);
  const std::vector<double> expected = history(one, 2);
  EXPECT_EQ(history(two, 2, 3), expected);
  EXPECT_EQ(history(five, 2, 2), expected);
}

TEST_F(SparseTrainerTest, ChunksAreTheWholeBatchUpToRounding) {
  // Batch norm sees a chunk at a time, so only the first loss of a model without it would be
  // equal; what must agree is how well both learn.
  Trainer whole = make(), chunked = make(1, 4);
  history(whole, 4);
  history(chunked, 4);
  EXPECT_NEAR(test_auc(chunked), test_auc(whole), 0.02);
}

TEST_F(SparseTrainerTest, ThreadsShareTheTablesAndLearnAsWell) {
  Trainer one = make(), three = make(3);
  history(one, 6);
  const std::vector<double> steps = history(three, 6, 2);
  EXPECT_EQ(steps.size(), 6 * kRows / 50 + 3);  // every batch once, then the test metrics
  EXPECT_NEAR(test_auc(three), test_auc(one), 0.02);
}

TEST_F(SparseTrainerTest, ResumesInTheMiddleOfAnEpochWithTheSameBits) {
  for (const int chunks : {0, 4}) {
    Trainer whole = make(1, chunks);
    const std::vector<double> expected = history(whole, 2);
    const std::string dir = folder_.path() + "/save";

    Trainer first = make(1, chunks);
    FitOptions options;
    options.epochs = 2;
    options.show = nullptr;
    options.checkpoint_every = 17;
    options.checkpoint = [&](const ResumePoint& point) { first.save(dir, point); };
    uint64_t steps = 0;
    options.on_step = [&](const Progress&) { return ++steps == 85 ? Next::stop : Next::go_on; };
    first.fit(*data(first), options);  // stops after step 25 of epoch 2, saved at step 17

    Trainer second = make(2 * (chunks > 0 ? 1 : 0) + 1, chunks);
    FitOptions rest;
    rest.epochs = 2;
    rest.show = nullptr;
    rest.resume = second.load(dir);
    EXPECT_EQ(rest.resume->epoch, 2);
    EXPECT_EQ(rest.resume->data.batches, 17U);
    std::vector<double> seen;
    rest.on_step = [&](const Progress& p) {
      seen.push_back(p.metric("loss"));
      return Next::go_on;
    };
    second.fit(*data(second), rest);
    for (const Metric& metric : second.evaluate(*test_data(second))) seen.push_back(metric.value);
    EXPECT_EQ(seen, std::vector<double>(expected.end() - static_cast<ptrdiff_t>(seen.size()),
                                        expected.end()));
    EXPECT_EQ(seen.size(), kRows / 50 - 17 + 3);
  }
}

TEST_F(SparseTrainerTest, ACheckpointIsTakenWithNothingUnderWay) {
  Trainer trainer = make(3);
  FitOptions options;
  options.show = nullptr;
  options.checkpoint_every = 10;
  size_t checkpoints = 0;
  options.checkpoint = [&](const ResumePoint& point) {
    ++checkpoints;
    const auto persistables = trainer.communicator().store().persistables();
    EXPECT_EQ(static_cast<uint64_t>(persistables.back().value.as<int64_t>()[0]),
              point.data.batches);
  };
  trainer.fit(*data(trainer), options);
  EXPECT_GE(checkpoints, 3U);
}

TEST_F(SparseTrainerTest, AFailureOfAnyThreadEndsTheRun) {
  Trainer trainer = make(3);
  FitOptions options;
  options.show = nullptr;
  options.on_step = [](const Progress& p) -> Next {
    check<DataError>(p.step < 5, "step 5 fails");
    return Next::go_on;
  };
  EXPECT_EQ(message_of<DataError>([&] { trainer.fit(*data(trainer), options); }), "step 5 fails");
}

TEST_F(SparseTrainerTest, TheExportedModelPredictsAsTheTrainedOne) {
  Trainer trainer = make();
  history(trainer, 2);
  const double expected = test_auc(trainer);
  const std::string dir = folder_.path() + "/export";
  trainer.export_inference(dir);
  Predictor predictor(*env_, dir);
  const auto test = test_data(trainer);
  const auto meter = make_meter("auc");
  test->begin_epoch(0);
  Batch batch;
  while (test->next(batch)) {
    const Feeds answer = predictor.run(batch);
    meter->add({.predictions = answer.at("predict").as<float>(),
                .labels = batch.feeds.at("label").as<float>()});
  }
  EXPECT_EQ(meter->value(), expected);
}

TEST_F(SparseTrainerTest, KillingASaveLeavesTheOneBefore) {
  const std::string dir = folder_.path() + "/save";
  Trainer trainer = make();
  history(trainer, 1);
  trainer.save(dir, {.epoch = 2});
  const double auc = test_auc(trainer);
  for (int delay = 0; delay < 12; ++delay) {
    const pid_t child = ::fork();
    if (child == 0) {  // saves over and over until it is killed
      for (;;) trainer.save(dir, {.epoch = 2});
    }
    ::usleep(static_cast<useconds_t>(3000 + delay * 1700));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    Trainer loaded = make();
    EXPECT_EQ(loaded.load(dir).epoch, 2);
    EXPECT_EQ(test_auc(loaded), auc);
  }
  // A later save removes what the killed ones left.
  trainer.save(dir, {.epoch = 3});
  size_t tables = 0;
  for (const auto& file : std::filesystem::directory_iterator(dir))
    tables += file.path().extension() == ".rows" ? 1 : 0;
  EXPECT_EQ(tables, 3U);
}

TEST_F(SparseTrainerTest, DamagedCheckpointsAreRefused) {
  const std::string dir = folder_.path() + "/save";
  Trainer trainer = make();
  history(trainer, 1);
  trainer.save(dir);
  for (const auto& file : std::filesystem::directory_iterator(dir)) {
    if (file.path().extension() != ".rows") continue;
    const auto size = std::filesystem::file_size(file.path());
    std::filesystem::resize_file(file.path(), size - 5);
    break;
  }
  Trainer other = make();
  EXPECT_NE(message_of<DataError>([&] { other.load(dir); }).find(".rows"), std::string::npos);
}

TEST(PlanOfTables, OptionsForAnUnknownTableAreRefused) {
  const auto env = real_env();
  TrainerOptions options;
  options.tables = {{"factor", {}}};
  EXPECT_EQ(message_of<ConfigError>([&] { Trainer(*env, model, options); }),
            "options for a table 'factor', which the model does not have");
}

}  // namespace
}  // namespace argosy

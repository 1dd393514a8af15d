#include "argosy/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "argosy/base/test_support.h"
#include "argosy/nn/layers.h"
#include "argosy/samples/samples.h"
#include "argosy/train/predictor.h"
#include "argosy/train/saved_model.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

/// A classifier with a state (batch norm) and randomness (dropout), so that both must be kept.
ModelOutputs classifier(Builder& g) {
  const Var x = g.input("x", {{-1, 6}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  Var h = nn::linear(x, 16, "fc", {.activation = "relu"});
  h = nn::dropout(nn::batch_norm(h, "norm"), 0.2);
  const Var logits = nn::linear(h, 3, "out");
  return {.loss = nn::softmax_loss(logits, label),
          .metrics = {{"acc", nn::accuracy(logits, label)}},
          .predictions = {{"probability", nn::softmax(logits)}}};
}

Feeds make_points(int64_t n, uint64_t seed) {
  Tensor x({n, 6}), label({n, 1}, DType::i64);
  const RandomStream random(seed);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const uint64_t kind = random.below(100 * i, 3);
    label.as<int64_t>()[i] = static_cast<int64_t>(kind);
    for (size_t c = 0; c < 6; ++c)
      x.as<float>()[i * 6 + c] =
          static_cast<float>(random.normal(100 * i + c + 1) + (c % 3 == kind ? 2.5 : 0));
  }
  return {{"x", x}, {"label", label}};
}

class TrainerTest : public testing::Test {
 public:
  TrainerTest()
      : dir_((std::filesystem::temp_directory_path() /
              ("argosy_train_" + std::to_string(env_->random())))
                 .string()) {}
  ~TrainerTest() override { std::filesystem::remove_all(dir_); }

 protected:
  Trainer make(GraphMode graph = GraphMode::recorded, const std::string& rule = "adam") {
    return Trainer(
        *env_, classifier,
        {.optimizer = {.rule = rule, .learning_rate = "0.01"}, .graph = graph, .seed = 5});
  }

  std::unique_ptr<Env> env_ = real_env();
  std::string dir_;
  std::unique_ptr<Dataset> data_ = array_dataset(make_points(600, 1), {.batch_size = 50});
  std::unique_ptr<Dataset> test_ =
      array_dataset(make_points(300, 2), {.batch_size = 70, .shuffle = false});
};

std::vector<double> losses(Trainer& trainer, Dataset& data, int epochs) {
  std::vector<double> seen;
  trainer.fit(data, {.epochs = epochs,
                     .on_step =
                         [&](const Progress& p) {
                           seen.push_back(p.metric("loss"));
                           return Next::go_on;
                         },
                     .show = nullptr});
  return seen;
}

TEST_F(TrainerTest, LearnsAndEvaluates) {
  Trainer trainer = make();
  trainer.fit(*data_, {.epochs = 10, .show = nullptr});
  const std::vector<Metric> result = trainer.evaluate(*test_);
  ASSERT_EQ(result.size(), 2U);
  EXPECT_EQ(result[1].name, "acc");
  EXPECT_GT(result[1].value, 0.9);
}

TEST_F(TrainerTest, BothGraphModesGiveTheSameLossesToTheLastBit) {
  Trainer recorded = make(GraphMode::recorded), eager = make(GraphMode::eager);
  EXPECT_EQ(losses(recorded, *data_, 3), losses(eager, *data_, 3));
  EXPECT_EQ(recorded.evaluate(*test_)[0].value, eager.evaluate(*test_)[0].value);
}

TEST_F(TrainerTest, LoadedModelGoesOnAsIfNeverStopped) {
  for (const char* rule : {"sgd", "momentum(0.9)", "adam"}) {
    Trainer whole = make(GraphMode::recorded, rule);
    std::vector<double> expected = losses(whole, *data_, 2);
    Trainer first = make(GraphMode::recorded, rule), second = make(GraphMode::recorded, rule);
    losses(first, *data_, 1);
    first.save(dir_);
    second.load(dir_);
    // The second epoch of `whole` has another order than the first of `second`: replay it by hand.
    data_->begin_epoch(5 + 2);
    Batch batch;
    std::vector<double> resumed;
    while (data_->next(batch)) resumed.push_back(second.step(batch)[0]);
    expected.erase(expected.begin(),
                   expected.begin() + static_cast<std::ptrdiff_t>(resumed.size()));
    EXPECT_EQ(resumed, expected) << rule;
  }
}

TEST_F(TrainerTest, DamagedModelIsRefusedByNameAndChangesNothing) {
  Trainer trainer = make();
  losses(trainer, *data_, 1);
  trainer.save(dir_);
  const std::string path = dir_ + "/persistables.argosy";
  const std::vector<std::byte> good = env_->read_file(path);
  const double before = trainer.evaluate(*test_)[0].value;
  const auto expect_refused = [&](std::vector<std::byte> bytes, const char* what) {
    write_file_atomically(*env_, path, bytes);
    try {
      trainer.load(dir_);
      ADD_FAILURE() << what << " was accepted";
    } catch (const DataError& e) {
      EXPECT_TRUE(std::string(e.what()).starts_with(path)) << e.what();
    }
    EXPECT_EQ(trainer.evaluate(*test_)[0].value, before) << what;
  };
  for (size_t keep : {size_t{0}, size_t{7}, size_t{20}, good.size() / 2, good.size() - 1})
    expect_refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(keep)},
                   "a truncated file");
  for (size_t at = 0; at < good.size(); at += good.size() / 23 + 1) {
    auto bad = good;
    bad[at] ^= std::byte{0x10};
    expect_refused(bad, "a flipped bit");
  }
  Trainer other(
      *env_,
      [](Builder& g) {
        return ModelOutputs{.loss = nn::mean(nn::linear(g.input("x", {{-1, 6}}), 1, "fc"))};
      },
      {});
  other.save(dir_);
  EXPECT_THROW(trainer.load(dir_), DataError) << "a model of other shapes";
  EXPECT_EQ(trainer.evaluate(*test_)[0].value, before);
}

TEST_F(TrainerTest, ExportedModelAnswersAsTheTrainedOne) {
  Trainer trainer = make();
  trainer.fit(*data_, {.epochs = 5, .show = nullptr});
  trainer.export_inference(dir_);
  Predictor predictor(*env_, dir_);
  const Feeds points = make_points(300, 2);
  const Tensor probability = predictor.run({{"x", points.at("x")}}).at("probability");
  EXPECT_EQ(probability.shape(), (Shape{300, 3}));
  double right = 0;
  for (size_t i = 0; i < 300; ++i) {
    const auto row = probability.as<float>().subspan(i * 3, 3);
    right +=
        std::ranges::max_element(row) - row.begin() == points.at("label").as<int64_t>()[i] ? 1 : 0;
  }
  EXPECT_NEAR(right / 300, trainer.evaluate(*test_)[1].value, 1e-6);
  for (const Node& node : predictor.program().nodes) EXPECT_EQ(node.phase, Phase::forward);
  EXPECT_FALSE(predictor.program().find("label")) << "the label is pruned away";
}

TEST_F(TrainerTest, StopsWhenTheTestMetricNoLongerImproves) {
  Trainer trainer = make();
  int epochs = 0;
  trainer.fit(*data_, {.epochs = 200,
                       .test = test_.get(),
                       .early_stop = EarlyStop{.metric = "loss", .patience = 2},
                       .on_epoch =
                           [&](const Progress&, const auto&) {
                             ++epochs;
                             return Next::go_on;
                           },
                       .show = nullptr});
  EXPECT_LT(epochs, 200);
  EXPECT_GT(epochs, 2);
}

TEST_F(TrainerTest, ACallbackCanStopAtAStep) {
  Trainer trainer = make();
  const Progress end = trainer.fit(
      *data_, {.epochs = 3,
               .on_step = [](const Progress& p) { return p.step == 4 ? Next::stop : Next::go_on; },
               .show = nullptr});
  EXPECT_EQ(end.epoch, 1);
  EXPECT_EQ(end.step, 4U);
}

TEST_F(TrainerTest, ANanIsNamedWithItsStepAndItsFirstNode) {
  const Model bad = [](Builder& g) -> ModelOutputs {
    return {.loss = nn::mean(g.apply("log", {nn::linear(g.input("x", {{-1, 6}}), 1, "fc")}))};
  };
  for (GraphMode graph : {GraphMode::recorded, GraphMode::eager}) {
    Trainer trainer(*env_, bad, {.graph = graph});
    Batch batch;
    data_->begin_epoch(1);
    data_->next(batch);
    try {
      trainer.step(batch);
      FAIL() << "a NaN went unnoticed";
    } catch (const DataError& e) {
      EXPECT_TRUE(
          std::string(e.what()).starts_with("step 1: the loss is not finite: nan at 0 of 1"))
          << e.what();
      EXPECT_NE(std::string(e.what()).find("trainer_test.cc"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(": NaN or infinity in %4 f32[50,1]"), std::string::npos)
          << e.what();
    }
  }
}

/// As of a network that saturates at a learning rate of 1e30, whose loss never is NaN.
TEST_F(TrainerTest, ALossThatIsFiniteButOutOfRangeIsNamed) {
  const Model huge = [](Builder& g) -> ModelOutputs {
    return {.loss = nn::mean(g.apply("scale", {nn::linear(g.input("x", {{-1, 6}}), 1, "fc")},
                                     {{"scale", 1e30}}))};
  };
  Trainer trainer(*env_, huge, {});
  Batch batch;
  data_->begin_epoch(1);
  data_->next(batch);
  const std::string message = message_of<DataError>([&] { trainer.step(batch); });
  EXPECT_TRUE(message.starts_with("step 1: the loss is beyond 2^64: ")) << message;
}

/// As a learning rate does that is far too large: the loss is finite up to the step in which the
/// parameters no longer are.
TEST_F(TrainerTest, WhatOverflowsIsNamedWithChunksToo) {
  for (const int chunks : {0, 2}) {
    Trainer trainer(*env_, classifier,
                    {.optimizer = {.rule = "sgd", .learning_rate = "1e30"}, .chunks = chunks});
    const std::string message =
        message_of<DataError>([&] { trainer.fit(*data_, {.epochs = 20, .show = nullptr}); });
    EXPECT_TRUE(message.starts_with("step ")) << message;
    EXPECT_NE(message.find(" is not finite: "), std::string::npos) << message;
    EXPECT_NE(message.find("; first: "), std::string::npos) << message;
  }
}

TEST_F(TrainerTest, CheckNanCanBeTurnedDownButANanIsNeverSaved) {
  for (const CheckNan policy : {CheckNan::warn, CheckNan::off}) {
    Trainer trainer(*env_, classifier,
                    {.optimizer = {.rule = "sgd", .learning_rate = "1e30"}, .check_nan = policy});
    testing::internal::CaptureStderr();
    trainer.fit(*data_, {.epochs = 20, .show = nullptr});
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.starts_with("warning: step "), policy == CheckNan::warn) << said;
    EXPECT_LT(std::ranges::count(said, '\n'), 12) << said;
    for (const auto& save : {std::function<void()>([&] { trainer.save(dir_ + "/saved"); }),
                             std::function<void()>([&] { trainer.export_inference(dir_); })}) {
      const std::string message = message_of<DataError>(save);
      EXPECT_NE(message.find("not saved, '"), std::string::npos) << message;
      EXPECT_NE(message.find("holds NaN or infinity"), std::string::npos) << message;
    }
    EXPECT_FALSE(env_->file_exists(dir_ + "/saved/persistables.argosy"));
    EXPECT_FALSE(env_->file_exists(dir_ + "/inference.argosy"));
  }
}

TEST_F(TrainerTest, RefusesWhatCannotBeTrained) {
  const auto loss_of = [](Builder& g) {
    return ModelOutputs{.loss = nn::mean(nn::linear(g.input("x", {{-1, 6}}), 1, "fc"))};
  };
  const auto make_with = [&](Optimizer optimizer) {
    Trainer trainer(*env_, loss_of, {.optimizer = std::move(optimizer)});
  };
  EXPECT_THROW(make_with({.rule = "adm"}), ConfigError);
  EXPECT_THROW(make_with({.rule = "adam(beta=1)"}), ConfigError);
  EXPECT_THROW(make_with({.learning_rate = "fast"}), ConfigError);
  EXPECT_THROW(make_with({.regularizer = "l3(1)"}), ConfigError);
  EXPECT_THROW(make_with({.clip = "norm(-1)"}), ConfigError);
  EXPECT_THROW(Trainer(*env_, loss_of, {.strategy = {.mode = "remote"}}), ConfigError);
  EXPECT_THROW(Trainer(*env_, [](Builder&) { return ModelOutputs{}; }, {}), ConfigError);
}

TEST_F(TrainerTest, ClipByNormBoundsTheStep) {
  const Model steep = [](Builder& g) -> ModelOutputs {
    const Var y =
        nn::linear(g.input("x", {{-1, 6}}), 1, "fc", {.weight_init = "zeros", .bias = false});
    return {.loss = nn::mean(g.apply("scale", {y}, {{"scale", 1000.0}}))};
  };
  for (const char* clip : {"norm(0.5)", "global_norm(0.5)"}) {
    Trainer trainer(*env_, steep,
                    {.optimizer = {.rule = "sgd", .learning_rate = "1", .clip = clip}});
    Batch batch;
    data_->begin_epoch(1);
    data_->next(batch);
    trainer.step(batch);
    const Tensor w = batch.feeds.at("fc.w");
    double square = 0;
    for (float value : w.as<float>())
      square += static_cast<double>(value) * static_cast<double>(value);
    EXPECT_NEAR(std::sqrt(square), 0.5, 1e-5) << clip;
  }
}

TEST(Progress, PrintsOneLine) {
  const Progress progress{.epoch = 2,
                          .epochs = 5,
                          .step = 400,
                          .steps = 937,
                          .samples = 25600,
                          .seconds = 2,
                          .metrics = {{"loss", 0.23456}, {"acc", 0.931}}};
  EXPECT_EQ(format_progress(progress),
            "epoch 2/5  step 400/937  loss 0.2346  acc 0.9310  12,800 samples/s  eta 17s");
}

}  // namespace
}  // namespace argosy

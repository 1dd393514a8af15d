#include "argosy/train/session.h"

#include <gtest/gtest.h>

#include <array>

#include "argosy/base/test_support.h"
#include "argosy/nn/layers.h"
#include "argosy/train/forward_program.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

using ps::Purpose;

/// A logistic regression over two slots and a dense input, as a script records it.
struct Script {
  Builder g;
  Var embedded, logit, loss;
  ForwardProgram forward;

  Script() {
    const auto lookup = [&](const std::string& slot) {
      return nn::embedding(g, std::array{slot}, "table", 2, {.init = "uniform(-1, 1)"});
    };
    embedded = lookup("C1");
    const std::array parts{embedded, lookup("C2"), g.input("dense", {{-1, 2}})};
    logit = nn::linear(nn::concat(parts, 1), 1, "fc");
    loss = nn::logistic_loss(logit, g.input("label", {{-1, 1}}));
    const Var unused = nn::linear(logit, 1, "unused");  // the loss does not depend on it
    g.name(unused, "unused");
    forward = {.program = g.program(), .loss = loss.id};
  }
};

Fed ids(std::initializer_list<int64_t> values) {
  return {.values = Tensor::of<int64_t>({static_cast<int64_t>(values.size()), 1}, values)};
}

FedByName batch() {
  return {{"C1", ids({1, 2, 3})},
          {"C2", ids({10, 20, 10})},
          {"dense", {.values = Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})}},
          {"label", {.values = Tensor::of<float>({3, 1}, {0, 1, 0})}}};
}

struct ScriptRun {
  Script script;
  ReplayedModel recorded = as_model(script.forward);
  std::unique_ptr<Env> env = real_env();
  Trainer trainer{*env, recorded.model, {.optimizer = {.rule = "sgd", .learning_rate = "0.1"}}};
  Session session{trainer};

  VarId now(Var var) const { return recorded.now[var.id.index()]; }
  float loss(Purpose purpose) {
    return session.run(batch(), std::array{now(script.loss)}, purpose)[0].as<float>()[0];
  }
};

TEST(Session, TrainsOnArrays) {
  ScriptRun run;
  const float first = run.loss(Purpose::inference), again = run.loss(Purpose::inference);
  EXPECT_EQ(first, again) << "inference changes nothing";
  run.loss(Purpose::training);
  float last = 0;
  for (int i = 0; i < 100; ++i) last = run.loss(Purpose::training);
  EXPECT_LT(last, 0.5F * first);
}

TEST(Session, HandsOutAnyVariable) {
  ScriptRun run;
  run.loss(Purpose::training);
  const std::array fetch{run.now(run.script.logit), run.now(run.script.embedded),
                         run.now(run.script.logit)};
  const std::vector<Tensor> values = run.session.run(batch(), fetch, Purpose::inference);
  EXPECT_EQ(values[0].shape(), (Shape{3, 1}));
  EXPECT_EQ(values[1].shape(), (Shape{3, 2}));
  EXPECT_TRUE(same_bits(values[0], values[2]));
  const std::vector<Tensor> kept = run.session.run(batch(), fetch, Purpose::training);
  run.loss(Purpose::training);
  EXPECT_TRUE(same_bits(values[0], kept[0])) << "values are copies";
}

TEST(Session, TakesAnyNumberOfIdsWhereTheyArePooled) {
  Builder g;
  const Var pooled = nn::embedding(g, std::array<std::string, 1>{"words"}, "table", 2,
                                   {.init = "ones", .pool = "sum"});
  const Var loss = nn::mean(pooled);
  const ReplayedModel recorded = as_model({.program = g.program(), .loss = loss.id});
  const auto env = real_env();
  Trainer trainer(*env, recorded.model, {});
  Session session(trainer);
  const FedByName feeds{
      {"words", {.values = Tensor::of<int64_t>({3}, {7, 8, 7}), .offsets = {0, 2, 3}}}};
  const std::array fetch{recorded.now[pooled.id.index()]};
  EXPECT_TRUE(same_bits(session.run(feeds, fetch, Purpose::training)[0],
                        Tensor::of<float>({2, 2}, {2, 2, 1, 1})));
}

TEST(Session, EvaluatesAProgramWithoutALoss) {
  Builder g;
  const Var out = nn::linear(g.input("x", {{-1, 2}}), 1, "fc", {.weight_init = "ones"});
  const ReplayedModel recorded = as_model({.program = g.program()});
  const auto env = real_env();
  Trainer trainer(*env, recorded.model, {});
  Session session(trainer);
  const FedByName feeds{{"x", {.values = Tensor::of<float>({1, 2}, {3, 4})}}};
  const std::array fetch{recorded.now[out.id.index()]};
  EXPECT_EQ(session.run(feeds, fetch, Purpose::inference)[0].as<float>()[0], 7);
  EXPECT_THROW(session.run(feeds, fetch, Purpose::training), ConfigError);
}

TEST(Session, SaysWhatIsMissingOrDoesNotFit) {
  ScriptRun run;
  const auto refused = [&](FedByName feeds) {
    return message_of<ConfigError>(
        [&] { run.session.run(feeds, std::array{run.now(run.script.loss)}, Purpose::training); });
  };
  FedByName feeds = batch();
  feeds.erase("C2");
  EXPECT_NE(refused(feeds).find("'C2' is not fed"), std::string::npos);
  feeds = batch();
  feeds["C2"] = ids({1, 2});
  EXPECT_NE(refused(feeds).find("'C2' has 2 instances"), std::string::npos);
  feeds = batch();
  feeds.erase("label");
  EXPECT_NE(refused(feeds).find("label"), std::string::npos);
  feeds = batch();
  feeds["C1"].values = Tensor::of<float>({3, 1}, {1, 2, 3});
  EXPECT_NE(refused(feeds).find("ids are int64"), std::string::npos);
}

TEST(Trainer, ComputesWithFewerThreadsThanItHas) {
  ScriptRun run;
  EXPECT_THROW(run.trainer.set_threads(2), ConfigError);
  run.trainer.set_threads(1);
}

}  // namespace
}  // namespace argosy

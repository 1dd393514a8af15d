#include "argosy/graph/executor.h"
#include "argosy/base/test_support.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "argosy/graph/memory_plan.h"

namespace argosy {
namespace {

Tensor ramp(const Shape& shape, float start = 0.01F) {
  Tensor tensor(shape);
  float value = start;
  for (float& x : tensor.as<float>()) x = (value += 0.01F);
  return tensor;
}

/// x -> linear+relu -> a chain of element-wise ops -> mean, with gradients.
struct Model {
  Builder g;
  Var loss;
  Model() {
    const Var x = g.input("x", {{-1, 40}});
    const Var w = g.param("w", {40, 30}, "zeros"), b = g.param("b", {30}, "zeros");
    const Var h = g.apply("linear", {x, w, b}, {{"activation", "relu"}});
    const Var t = g.apply("tanh", {g.apply("sigmoid", {h})});
    loss = g.apply("mean", {g.apply("add", {t, h})});
    g.output(loss);
    g.backward(loss);
  }
  static Feeds feeds(int64_t batch) {
    return {{"x", ramp({batch, 40})}, {"w", ramp({40, 30}, -5)}, {"b", ramp({30})}};
  }
};

TEST(Executor, GivesTheSameBitsWithEveryOption) {
  const Model model;
  const Feeds feeds = Model::feeds(100);
  Executor plain(model.g.program(), {.fuse = false, .reuse = false});
  plain.run(feeds);
  for (bool fuse : {false, true}) {
    for (bool reuse : {false, true}) {
      Executor other(model.g.program(), {.fuse = fuse, .reuse = reuse});
      other.run(feeds);
      for (VarId id : model.g.program().outputs)
        EXPECT_TRUE(same_bits(plain.value(id), other.value(id))) << model.g.program().label(id);
    }
  }
}

TEST(Executor, EagerGivesTheSameBits) {
  const Model model;
  const Feeds feeds = Model::feeds(100);
  Executor executor(model.g.program());
  executor.run(feeds);
  Builder eager([&](const VarDesc& desc) { return feeds.at(desc.name); });
  const Var x = eager.input("x", {{-1, 40}});
  const Var w = eager.param("w", {40, 30}, "zeros"), b = eager.param("b", {30}, "zeros");
  const Var h = eager.apply("linear", {x, w, b}, {{"activation", "relu"}});
  const Var t = eager.apply("tanh", {eager.apply("sigmoid", {h})});
  const Var loss = eager.apply("mean", {eager.apply("add", {t, h})});
  EXPECT_TRUE(same_bits(loss.value(), executor.value(model.loss.id)));
  for (const VarGrad& pair : eager.backward(loss))
    EXPECT_TRUE(same_bits(eager.value(pair.grad), executor.value(pair.grad)))
        << eager.program().label(pair.var);
}

TEST(Executor, FollowsABatchSizeThatChanges) {
  const Model model;
  Executor executor(model.g.program());
  for (int64_t batch : {100, 7, 300, 100}) {
    executor.run(Model::feeds(batch));
    Executor fresh(model.g.program());
    fresh.run(Model::feeds(batch));
    EXPECT_TRUE(same_bits(executor.value(model.loss.id), fresh.value(model.loss.id))) << batch;
  }
}

TEST(Executor, DeliversOutputsTheMomentTheyAreFinal) {
  const Model model;
  Executor executor(model.g.program());
  std::vector<VarId> order;
  executor.run(Model::feeds(100), [&](VarId id, const Tensor& value) {
    EXPECT_TRUE(value.defined());
    order.push_back(id);
  });
  ASSERT_EQ(order.size(), model.g.program().outputs.size());
  EXPECT_EQ(order[0], model.loss.id) << "the loss is known before any gradient";
}

TEST(Executor, WritesABoundOutputIntoCallersMemory) {
  const Model model;
  const VarId grad = model.g.program().grads[0].grad;
  Executor executor(model.g.program()), plain(model.g.program());
  std::vector<float> arena(40 * 30 + 100, -1.0F);
  executor.bind_output(grad, Tensor::wrap(arena.data(), {1300}, DType::f32));
  executor.run(Model::feeds(100));
  plain.run(Model::feeds(100));
  EXPECT_EQ(executor.value(grad).data(), reinterpret_cast<const std::byte*>(arena.data()));
  EXPECT_TRUE(same_bits(executor.value(grad), plain.value(grad)));
  EXPECT_EQ(arena.back(), -1.0F);
  executor.bind_output(grad, Tensor({3}));
  EXPECT_THROW(executor.run(Model::feeds(100)), ConfigError);
}

TEST(Executor, SkipsWhatNoOutputNeeds) {
  Builder g;
  const Var x = g.input("x", {{2}});
  g.apply("relu", {g.input("unused", {{3}})});
  const Var y = g.apply("tanh", {x});
  g.output(y);
  Executor executor(g.program());
  EXPECT_NO_THROW(executor.run({{"x", ramp({2})}}))
      << "an input that no output needs need not be fed";
}

TEST(Executor, ViewsCostNoMemory) {
  Builder g;
  const Var x = g.input("x", {{-1, 4}});
  const Var y =
      g.apply("reshape", {g.apply("relu", {x})}, {{"shape", std::vector<int64_t>{-1, 2, 2}}});
  g.output(g.apply("tanh", {y}));
  Executor executor(g.program());
  executor.run({{"x", ramp({16, 4})}});
  EXPECT_EQ(executor.memory().planned, 16 * 4 * sizeof(float));
}

TEST(Executor, PlansCloseToWhatLivenessRequires) {
  const Model model;
  Executor executor(model.g.program());
  executor.prepare(Model::feeds(512));
  const MemoryReport memory = executor.memory();
  EXPECT_LE(static_cast<double>(memory.planned), 1.2 * static_cast<double>(memory.required));
  EXPECT_LT(memory.planned, memory.without_reuse);
}

TEST(Executor, NamesWhatIsMissingOrDoesNotFitAndWhereItWasAskedFor) {
  Builder g;
  const std::string place = "argosy/graph/executor_test.cc:" + std::to_string(__LINE__ + 1) + ": ";
  const Var x = g.input("x", {{-1, 40}});
  g.output(g.apply("relu", {x}));
  Executor executor(g.program());
  const auto refusal = [&](const Feeds& feeds) {
    return message_of<ConfigError>([&] { executor.run(feeds); });
  };
  EXPECT_EQ(refusal({}), place + "input 'x' f32[-1,40] is not fed");
  EXPECT_EQ(refusal({{"x", Tensor({3, 41})}}),
            place + "input 'x' expects f32[-1,40], got f32[3,41]");
  EXPECT_EQ(refusal({{"x", Tensor({3, 40}, DType::i64)}}),
            place + "input 'x' expects f32[-1,40], got i64[3,40]");
}

TEST(Executor, SizesThatMeetOnlyAtRunTimeAreCheckedThen) {
  Builder g;
  const int line = __LINE__ + 1;
  g.output(g.apply("add", {g.input("a", {{-1, 4}}), g.input("b", {{-1, 4}})}));
  Executor executor(g.program());
  const std::string message = message_of<ConfigError>([&] {
    executor.run({{"a", Tensor({3, 4})}, {"b", Tensor({5, 4})}});
  });
  EXPECT_EQ(
      message,
      "argosy/graph/executor_test.cc:" + std::to_string(line) +
          ": add(f32[3,4], f32[5,4]): [3,4] and [5,4] do not broadcast: 3 against 5 on axis -2");
}

TEST(Executor, CheckNanNamesTheNode) {
  Builder g;
  const Var x = g.input("x", {{2}});
  const int line = __LINE__ + 1;
  g.output(g.apply("log", {x}));
  Executor executor(g.program(), {.check_nan = true});
  EXPECT_EQ(message_of<DataError>([&] {
              executor.run({{"x", Tensor::of<float>({2}, {1, -1})}});
            }),
            "argosy/graph/executor_test.cc:" + std::to_string(line) +
                ": log(f32[2]): NaN or infinity in %1 f32[2]");
}

TEST(Builder, RefusalNamesOpShapesAndTheCallersLine) {
  Builder g;
  const Var x = g.input("x", {{-1, 13}}), w = g.param("w", {12, 1}, "zeros");
  const int line = __LINE__ + 1;
  const std::string message = message_of<ConfigError>([&] { g.apply("linear", {x, w}); });
  EXPECT_EQ(message,
            "argosy/graph/executor_test.cc:" + std::to_string(line) +
                ": linear(f32[-1,13], f32[12,1]): x ends in 13 features but w has 12 rows");
}

TEST(Builder, NamesTheNearestOp) {
  Builder g;
  const Var x = g.input("x", {{2}});
  EXPECT_EQ(message_of<ConfigError>([&] { g.apply("relo", {x}); }),
            "unknown op 'relo', did you mean relu?");
}

/// In both graph modes, and with fused chains.
TEST(Executor, ALabelThatIsNoneNamesTheLossAndItsLine) {
  const auto loss = [](Builder& g) {
    return g.apply("mean",
                   {g.apply("log_loss", {g.input("p", {{-1, 1}}), g.input("y", {{-1, 1}})})});
  };
  const Feeds feeds = {{"p", Tensor::of<float>({2, 1}, {0.5F, 0.5F})},
                       {"y", Tensor::of<float>({2, 1}, {1, 2})}};
  Builder g;
  g.output(loss(g));
  Executor executor(g.program());
  const std::string recorded = message_of<DataError>([&] { executor.run(feeds); });
  EXPECT_TRUE(recorded.starts_with("argosy/graph/executor_test.cc:")) << recorded;
  EXPECT_TRUE(recorded.ends_with("a label is 2, expected 0 or 1, or a share from 0 to 1"))
      << recorded;
  Builder eager([&](const VarDesc& desc) { return feeds.at(desc.name); });
  const std::string at_once = message_of<DataError>([&] { loss(eager); });
  EXPECT_NE(at_once.find("log_loss("), std::string::npos) << at_once;
}

TEST(Builder, NamesThatCannotBeReadBackAreRefusedWhereTheyAreGiven) {
  Builder g;
  const Var x = g.input("x", {{2}});
  for (const std::string name : {"a b", "a,b", "a(b", "a)", "a[0]", "{a", "a=b", "a\"", "a\n"}) {
    const int line = __LINE__ + 1;
    EXPECT_EQ(message_of<ConfigError>([&] { g.input(name, {{2}}); }),
              "argosy/graph/executor_test.cc:" + std::to_string(line) + ": input '" + name +
                  "': expected a name without blanks, quotes, commas, brackets and =");
    EXPECT_THROW(g.param(name, {2}, "zeros"), ConfigError) << name;
    EXPECT_THROW(g.name(g.apply("relu", {x}), name), ConfigError) << name;
  }
  for (const char* name : {"0", "fc_0.w_0", "w@GRAD", "a/b-c", "layer.0.weight", "%1", "#a"}) {
    g.param(name, {2}, "zeros");
    EXPECT_TRUE(Program::parse(g.program().text(), "text").find(name)) << name;
  }
}

TEST(Builder, RefusesALossThatIsNotOneNumberAndASecondBackward) {
  Builder g;
  const Var w = g.param("w", {3}, "zeros");
  EXPECT_THROW(g.backward(w), ConfigError);
  g.backward(g.apply("mean", {w}));
  EXPECT_THROW(g.backward(w), ConfigError);
}

TEST(Builder, AsksAgainForANameAndGetsTheSameVariable) {
  Builder g;
  const Var a = g.param("shared", {3}, "zeros"), b = g.param("shared", {3}, "zeros");
  EXPECT_EQ(a.id, b.id);
  EXPECT_THROW(g.param("shared", {4}, "zeros"), ConfigError);
}

TEST(Builder, GradientOfAVariableUsedTwiceIsTheSum) {
  Builder g([](const VarDesc&) { return Tensor::of<float>({2}, {3, 4}); });
  const Var w = g.param("w", {2}, "zeros");
  const auto& grads = g.backward(g.apply("sum", {g.apply("add", {w, w})}));
  ASSERT_EQ(grads.size(), 1U);
  EXPECT_EQ(g.value(grads[0].grad).as<float>()[0], 2.0F);
}

TEST(MemoryPlan, BuffersAliveTogetherNeverOverlap) {
  std::vector<Lifetime> buffers;
  const RandomStream random(5);
  for (uint64_t i = 0; i < 200; ++i) {
    const size_t first = random.below(3 * i, 50);
    buffers.push_back(
        {64 * (1 + random.below(3 * i + 1, 20)), first, first + random.below(3 * i + 2, 8), 0});
  }
  const size_t arena = plan_memory(buffers);
  EXPECT_GE(arena, required_memory(buffers));
  EXPECT_LE(static_cast<double>(arena), 1.2 * static_cast<double>(required_memory(buffers)));
  for (const Lifetime& a : buffers) {
    EXPECT_LE(a.offset + a.bytes, arena);
    for (const Lifetime& b : buffers) {
      if (&a == &b || a.last < b.first || b.last < a.first) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
    }
  }
}

}  // namespace
}  // namespace argosy

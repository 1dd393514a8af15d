// Whole programs on a device: the networks that examples/mnist_collective and the zoo's dnn and
// wide_deep record, trained beside the processor.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "argosy/device/devices.h"
#include "argosy/graph/executor.h"
#include "argosy/nn/layers.h"
#include "argosy/ps/rule.h"

namespace argosy {
namespace {

int test_device() {
  if (device::devices("").count == 0) ::setenv(device::kEmulated, "1", 1);
  return 0;
}

Tensor random_floats(const Shape& shape, uint64_t seed, double scale = 1) {
  Tensor tensor(shape);
  const RandomStream random(seed);
  auto values = tensor.as<float>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(scale * random.normal(i));
  return tensor;
}

Tensor random_integers(const Shape& shape, DType dtype, uint64_t below, uint64_t seed) {
  Tensor tensor(shape, dtype);
  const RandomStream random(seed);
  for (size_t i = 0; i < static_cast<size_t>(tensor.numel()); ++i) {
    const auto value = static_cast<int64_t>(random.below(i, below));
    if (dtype == DType::i32)
      tensor.as<int32_t>()[i] = static_cast<int32_t>(value);
    else
      tensor.as<int64_t>()[i] = value;
  }
  return tensor;
}

/// A program, what it is fed and how its parameters change: all that training is, in small.
class Training {
 public:
  Training(const Program& program, VarId loss, int device)
      : loss_(loss), executor_(program, {.device = device}), rule_(ps::make_rule("adam")) {
    for (const VarGrad& grad : program.grads) {
      const VarDesc& desc = program.var(grad.var);
      Shape shape = desc.type.shape;
      if (shape[0] == Shape::kAny) shape[0] = kRows;
      feeds_[desc.name] = random_floats(shape, 100 + grad.var.index(), 0.1);
      states_.emplace_back(rule_->state_size(static_cast<size_t>(shape.numel())));
    }
  }

  double step(const Feeds& batch, uint64_t number) {
    for (const auto& [name, value] : batch) feeds_[name] = value;
    std::vector<VarId> seen;
    executor_.run(feeds_, [&](VarId id, const Tensor&) { seen.push_back(id); },
                  {.seed = 3, .step = number});
    const Program& program = executor_.program();
    EXPECT_EQ(seen.size(), program.outputs.size());
    for (size_t i = 0; i < program.grads.size(); ++i) {
      Tensor& value = feeds_.at(program.var(program.grads[i].var).name);
      rule_->apply(value.as<float>(), states_[i],
                   executor_.value(program.grads[i].grad).as<float>(),
                   {.lr = 0.01F, .step = number});
    }
    return executor_.value(loss_).as<float>()[0];
  }

  static constexpr int64_t kRows = 50;
  const Feeds& feeds() const { return feeds_; }

 private:
  VarId loss_;
  Executor executor_;
  std::unique_ptr<ps::Rule> rule_;
  Feeds feeds_;
  std::vector<std::vector<float>> states_;
};

/// 30 steps on both sides, with batches of two sizes.
template <class MakeBatch>
void expect_same_training(Builder& g, Var loss, MakeBatch make_batch) {
  g.output(loss);
  g.backward(loss);
  Training here(g.program(), loss.id, Executor::kNoDevice);
  Training there(g.program(), loss.id, test_device());
  double first = 0, last = 0;
  for (uint64_t step = 1; step <= 30; ++step) {
    const Feeds batch = make_batch(step % 3 == 0 ? 20 : 32, step % 4);
    last = here.step(batch, step);
    if (step == 1) first = last;
    EXPECT_NEAR(there.step(batch, step), last, 1e-4 * (1 + std::abs(last))) << "step " << step;
  }
  EXPECT_LT(last, first) << "nothing was learnt, so nothing was compared";
}

TEST(DevicePrograms, MnistTrainsAsOnTheProcessor) {
  Builder g;
  const Var x = g.input("x", {{-1, 784}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  const Var hidden = nn::mlp(x, std::array<int64_t, 2>{128, 128}, "tanh", "fc");
  const Var logits = nn::linear(nn::dropout(hidden, 0.1), 10, "prediction");
  g.output(nn::accuracy(logits, label));
  expect_same_training(g, nn::softmax_loss(logits, label), [](int64_t n, uint64_t seed) {
    return Feeds{{"x", random_floats({n, 784}, seed, 0.3)},
                 {"label", random_integers({n, 1}, DType::i64, 10, seed)}};
  });
}

/// Labels are 0 and 1: with others the loss has no bound, and training strays by the last bits.
Tensor labels(int64_t n, uint64_t seed) {
  Tensor labels = random_floats({n, 1}, seed, 0.5);
  for (float& label : labels.as<float>()) label = label > 0 ? 1.0F : 0.0F;
  return labels;
}

Feeds clicks(int64_t n, uint64_t seed) {
  return {{"dense", random_floats({n, 13}, seed)},
          {"label", labels(n, seed + 50)},
          {"embedding.index", random_integers({n, 26}, DType::i32, Training::kRows, seed)},
          {"first.index", random_integers({n, 26}, DType::i32, Training::kRows, seed)}};
}

std::vector<std::string> slots() {
  std::vector<std::string> names;
  for (int i = 1; i <= 26; ++i) names.push_back("C" + std::to_string(i));
  return names;
}

TEST(DevicePrograms, WideAndDeepTrainsAsOnTheProcessor) {
  Builder g;
  const Var dense = g.input("dense", {{-1, 13}}), label = g.input("label", {{-1, 1}});
  const Var rows = nn::embedding(g, slots(), "embedding", 9);
  const Var first = nn::sum_slots(nn::embedding(g, slots(), "first", 1), 1);
  const Var deep = nn::mlp(nn::concat(std::array{rows, dense}, -1), std::array<int64_t, 2>{64, 32},
                           "relu", "fc");
  const Var logit = first + nn::linear(dense, 1, "wide") + nn::linear(deep, 1, "deep_out");
  g.output(nn::sigmoid(logit));
  g.output(label);
  expect_same_training(g, nn::logistic_loss(logit, label), clicks);
}

TEST(DevicePrograms, PooledClicksTrainAsOnTheProcessor) {
  Builder g;
  const Var dense = g.input("dense", {{-1, 13}}), label = g.input("label", {{-1, 1}});
  const Var rows = nn::embedding(g, slots(), "embedding", 9, {.pool = "mean"});
  const Var deep = nn::mlp(nn::concat(std::array{rows, dense}, -1), std::array<int64_t, 2>{64, 32},
                           "relu", "fc");
  const Var logit = nn::linear(deep, 1, "out") + nn::fm_pairwise(rows, 9);
  expect_same_training(g, nn::logistic_loss(logit, label), [](int64_t n, uint64_t seed) {
    Feeds feeds = clicks(n, seed);
    Tensor offsets({n * 26 + 1}, DType::i32);  // none, one or two ids in each bag
    for (size_t i = 1; i < static_cast<size_t>(offsets.numel()); ++i)
      offsets.as<int32_t>()[i] =
          offsets.as<int32_t>()[i - 1] + static_cast<int32_t>((i + seed) % 3);
    const int64_t ids = offsets.as<int32_t>().back();
    feeds["embedding.offsets"] = offsets;
    feeds["embedding.index"] = random_integers({ids}, DType::i32, Training::kRows, seed);
    return feeds;
  });
}

std::string refusal(const Program& program, const Feeds& feeds) {
  try {
    Executor(program, {.device = test_device()}).run(feeds);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(DevicePrograms, AWrongIndexIsNamed) {
  Builder g;
  g.output(
      g.apply("embedding", {g.input("rows", {{-1, 2}}), g.input("index", {{-1}, DType::i64})}));
  EXPECT_EQ(refusal(g.program(),
                    {{"rows", Tensor({3, 2})}, {"index", Tensor::of<int64_t>({4}, {0, 2, 3, 1})}}),
            "embedding: index 3 at position 2, expected 0 to 2");
}

TEST(DevicePrograms, AnOpWithoutAKernelRunsOnTheProcessor) {
  for (const DType type : {DType::f32, DType::f64}) {
    Builder g;
    const Var x = g.input("x", {{-1, 2}, type});
    const Var y = nn::relu(g.apply("erf", {x + x}));
    g.output(y);
    const Feeds feeds = {{"x", type == DType::f32 ? Tensor::of<float>({2, 2}, {-1, 0.5, 1, 2})
                                                  : Tensor::of<double>({2, 2}, {-1, 0.5, 1, 2})}};
    Executor usual(g.program()), there(g.program(), {.device = test_device()});
    for (int step = 0; step < 2; ++step) {
      usual.run(feeds);
      there.run(feeds);
      EXPECT_TRUE(same_bits(usual.value(y.id), there.value(y.id)));
    }
  }
}

TEST(DevicePrograms, ADeviceThatIsNotThereIsNamed) {
  Builder g;
  g.output(g.apply("relu", {g.input("x", {{-1, 2}})}));
  test_device();
  EXPECT_THROW(Executor(g.program(), {.device = 999}), ConfigError);
}

TEST(DevicePrograms, BoundOutputsAndViewsComeBack) {
  Builder g;
  const Var x = g.input("x", {{-1, 4}});
  const Var y = nn::relu(x), flat = nn::reshape(y, {-1}), again = nn::reshape(x, {-1});
  for (const Var var : {y, flat, again, x}) g.output(var);
  Executor executor(g.program(), {.device = test_device()});
  Tensor memory({40});
  executor.bind_output(y.id, memory);
  const Tensor fed = random_floats({3, 4}, 1);
  executor.run({{"x", fed}});
  EXPECT_EQ(executor.value(y.id).data(), memory.data());
  EXPECT_TRUE(same_bits(executor.value(x.id), fed));
  EXPECT_TRUE(same_bits(executor.value(again.id).reshape({3, 4}), fed));
  EXPECT_TRUE(same_bits(executor.value(flat.id).reshape({3, 4}), executor.value(y.id)));
  for (size_t i = 0; i < 12; ++i)
    EXPECT_EQ(memory.as<float>()[i], std::max(fed.as<float>()[i], 0.0F));
}

TEST(DevicePrograms, NanIsFound) {
  Builder g;
  const Var x = g.input("x", {{-1}});
  g.output(nn::relu(x / x));
  Executor executor(g.program(), {.check_nan = true, .device = test_device()});
  EXPECT_THROW(executor.run({{"x", Tensor({2})}}), DataError);
}

}  // namespace
}  // namespace argosy

// Whole training steps of an MLP 784-H-H-10 with ReLU and SGD on random inputs, one thread:
// the work of bench/peers/torch_mlp.py.
#include <array>

#include "argosy/argosy.h"
#include "argosy/base/rng.h"
#include "bench/bench.h"

namespace argosy::benches {
namespace {

constexpr int64_t kPixels = 784, kClasses = 10, kBatches = 16;

Batch random_batch(int64_t size, uint64_t seed) {
  Batch batch;
  batch.size = static_cast<size_t>(size);
  Tensor x({size, kPixels}), label({size, 1}, DType::i64);
  const RandomStream random(seed);
  auto pixels = x.as<float>();
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(random.uniform(i));
  auto labels = label.as<int64_t>();
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int64_t>(random.below(pixels.size() + i, kClasses));
  batch.feeds = {{"x", x}, {"label", label}};
  return batch;
}

BenchResults run(const BenchFlags& flags) {
  check<ConfigError>(flags.at("model") == "mlp", "--model ", flags.at("model"), ": expected mlp");
  const int64_t size = integer(flags, "batch"), hidden = integer(flags, "hidden"),
                steps = integer(flags, "steps"), rounds = integer(flags, "rounds");
  const auto env = real_env();
  TrainerOptions options;
  options.optimizer = {.rule = flags.at("optimizer"), .learning_rate = "0.01"};
  if (flags.at("graph") == "dynamic") options.graph = GraphMode::eager;
  Trainer trainer(
      *env,
      [&](Builder& g) -> ModelOutputs {
        const Var x = g.input("x", {{-1, kPixels}});
        const Var label = g.input("label", {{-1, 1}, DType::i64});
        const Var h = nn::mlp(x, std::array{hidden, hidden}, "relu", "hidden");
        return {.loss = nn::softmax_loss(nn::linear(h, kClasses, "scores"), label)};
      },
      options);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < kBatches; ++i)
    batches.push_back(random_batch(size, static_cast<uint64_t>(i)));
  for (int64_t i = 0; i < 20; ++i) trainer.step(batches[static_cast<size_t>(i % kBatches)]);
  std::vector<double> rates;
  for (int64_t round = 0; round < rounds; ++round) {
    const double start = seconds_now();
    for (int64_t i = 0; i < steps; ++i) trainer.step(batches[static_cast<size_t>(i % kBatches)]);
    rates.push_back(static_cast<double>(size * steps) / (seconds_now() - start));
  }
  return {{"samples_per_second", median(rates)}};
}

}  // namespace

Bench train() {
  return {.help = "training steps of an MLP 784-H-H-10 (ReLU) on random inputs, one thread",
          .flags = {{"model", "mlp"},
                    {"batch", "64"},
                    {"hidden", "200"},
                    {"optimizer", "sgd"},
                    {"graph", "static"},
                    {"steps", "400"},
                    {"rounds", "5"}},
          .run = run};
}

}  // namespace argosy::benches

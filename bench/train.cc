// Whole training steps of an MLP 784-H-H-10 with ReLU and SGD on random inputs, one thread:
// the work of bench/peers/torch_mlp.py.
#include "bench/bench.h"
#include "bench/mlp_work.h"

namespace argosy::benches {
namespace {

BenchResults run(const BenchFlags& flags) {
  check<ConfigError>(flags.at("model") == "mlp", "--model ", flags.at("model"), ": expected mlp");
  const int64_t size = integer(flags, "batch"), hidden = integer(flags, "hidden"),
                steps = integer(flags, "steps"), rounds = integer(flags, "rounds");
  const auto env = real_env();
  TrainerOptions options;
  options.optimizer = {.rule = flags.at("optimizer"), .learning_rate = "0.01"};
  if (flags.at("graph") == "dynamic") options.graph = GraphMode::eager;
  Trainer trainer(*env, mlp_model(hidden), options);
  std::vector<Batch> batches = random_batches(size);
  for (int64_t i = 0; i < 20; ++i) trainer.step(batches[static_cast<size_t>(i % kMlpBatches)]);
  std::vector<double> rates;
  for (int64_t round = 0; round < rounds; ++round) {
    const double start = seconds_now();
    for (int64_t i = 0; i < steps; ++i) trainer.step(batches[static_cast<size_t>(i % kMlpBatches)]);
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

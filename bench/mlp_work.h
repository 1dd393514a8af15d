#pragma once

#include <array>
#include <vector>

#include "argosy/argosy.h"
#include "argosy/base/rng.h"

// An MLP 784-H-H-10 on random inputs, for the benchmarks that train it.
namespace argosy::benches {

inline constexpr int64_t kPixels = 784, kClasses = 10, kMlpBatches = 16;

inline Batch random_batch(int64_t size, uint64_t seed) {
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

inline std::vector<Batch> random_batches(int64_t size) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < kMlpBatches; ++i)
    batches.push_back(random_batch(size, static_cast<uint64_t>(i)));
  return batches;
}

inline Model mlp_model(int64_t hidden) {
  return [hidden](Builder& g) -> ModelOutputs {
    const Var x = g.input("x", {{-1, kPixels}});
    const Var label = g.input("label", {{-1, 1}, DType::i64});
    const Var h = nn::mlp(x, std::array{hidden, hidden}, "relu", "hidden");
    return {.loss = nn::softmax_loss(nn::linear(h, kClasses, "scores"), label)};
  };
}

}  // namespace argosy::benches

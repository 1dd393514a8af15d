#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>

#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/comm/test_groups.h"
#include "argosy/data/file_dataset.h"
#include "argosy/nn/layers.h"
#include "argosy/train/test_outcomes.h"
#include "argosy/train/trainer.h"
#include "argosy/world/env.h"

/// Models, data and runs of ranks that are threads of this process.
namespace argosy {

constexpr size_t kBatch = 8, kBatches = 20;  // of each rank

inline ModelOutputs plain_model(Builder& g, int64_t hidden) {
  const Var x = g.input("x", {{-1, 12}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  const Var h = nn::mlp(x, std::array<int64_t, 1>{hidden}, "tanh", "fc");
  return {.loss = nn::softmax_loss(nn::linear(h, 3, "out"), label)};
}
inline ModelOutputs plain(Builder& g) { return plain_model(g, 16); }

/// Instances of a rank; the label follows from the values.
inline Feeds arrays_of(int rank, size_t rows) {
  const RandomStream random(31 + static_cast<uint64_t>(rank));
  Tensor x({static_cast<int64_t>(rows), 12}), label({static_cast<int64_t>(rows), 1}, DType::i64);
  for (size_t i = 0; i < rows; ++i) {
    float sum = 0;
    for (size_t j = 0; j < 12; ++j) {
      const auto value = static_cast<float>(random.normal(i * 12 + j));
      x.as<float>()[i * 12 + j] = value;
      sum += j % 2 == 0 ? value : -value;
    }
    label.as<int64_t>()[i] = sum < -1 ? 0 : sum < 1 ? 1 : 2;
  }
  return {{"x", x}, {"label", label}};
}

inline std::unique_ptr<Dataset> dense_data(int rank, size_t batches = kBatches,
                                           size_t batch = kBatch) {
  return array_dataset(arrays_of(rank, batches * batch), {.batch_size = batch, .shuffle = false});
}

/// Batch t is batch t of every rank.
inline std::unique_ptr<Dataset> large_data(int ranks, size_t batches = kBatches) {
  const size_t rows = static_cast<size_t>(ranks) * kBatch * batches;
  Feeds large = {{"x", Tensor({static_cast<int64_t>(rows), 12})},
                 {"label", Tensor({static_cast<int64_t>(rows), 1}, DType::i64)}};
  for (int rank = 0; rank < ranks; ++rank)
    for (const auto& [name, array] : arrays_of(rank, kBatch * kBatches)) {
      const size_t bytes = array.bytes() / kBatches;
      for (size_t t = 0; t < batches; ++t)
        std::memcpy(large.at(name).data() +
                        (t * static_cast<size_t>(ranks) + static_cast<size_t>(rank)) * bytes,
                    array.data() + t * bytes, bytes);
    }
  return array_dataset(large,
                       {.batch_size = static_cast<size_t>(ranks) * kBatch, .shuffle = false});
}

inline Outcome train(Trainer& trainer, Dataset& data, int epochs = 2) {
  std::vector<double> losses = fit(trainer, data, epochs);
  trainer.leave();
  Outcome result = outcome_of(trainer);
  result.losses = std::move(losses);
  return result;
}

inline double greatest_difference(const Outcome& a, const Outcome& b) {
  double worst = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i].value.dtype() != DType::f32) continue;
    const auto x = a.values[i].value.as<float>(), y = b.values[i].value.as<float>();
    for (size_t j = 0; j < x.size(); ++j)
      worst = std::max(worst, std::abs(static_cast<double>(x[j]) - static_cast<double>(y[j])));
  }
  return worst;
}

inline double greatest_row_difference(const Outcome& a, const Outcome& b) {
  double worst = 0;
  for (size_t i = 0; i < a.tables.size(); ++i) {
    EXPECT_EQ(a.tables[i].keys, b.tables[i].keys);
    const auto x = a.tables[i].rows.as<float>(), y = b.tables[i].rows.as<float>();
    for (size_t j = 0; j < x.size(); ++j)
      worst = std::max(worst, std::abs(static_cast<double>(x[j]) - static_cast<double>(y[j])));
  }
  return worst;
}

inline TrainerOptions options_of(const std::string& rule, GraphMode graph = GraphMode::recorded) {
  TrainerOptions result;
  result.optimizer = {.rule = rule, .learning_rate = "0.02"};
  result.graph = graph;
  result.seed = 5;
  return result;
}

using Change = std::function<void(TrainerOptions&, int rank)>;

/// The result of each rank of a group that trains on `data(rank)`.
template <class Data>
std::vector<Outcome> train_ranks(const Model& model, const TrainerOptions& options, int ranks,
                                 const Data& data, const Change& change = {},
                                 const std::string& backend = "inproc", int epochs = 2) {
  const auto env = real_env();
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  const bool by_hosts = backend == "hierarchical";  // of two ranks each
  comm::TestRanks test(ranks, by_hosts ? 2 : ranks);
  auto groups = comm::inproc_groups(*env, ranks, std::chrono::seconds(60));
  comm::on_threads(ranks, [&](int rank) {
    std::shared_ptr<comm::Group> group = std::move(groups[static_cast<size_t>(rank)]);
    if (backend != "inproc") {
      comm::GroupOptions own = test.options(rank, backend);
      own.deterministic = !by_hosts;
      group = comm::connect_group(*env, own);
    }
    TrainerOptions own = options;
    own.strategy.mode = "collective";
    if (change) change(own, rank);
    Trainer trainer(*env, model, own, wires_of(group));
    const std::unique_ptr<Dataset> set = data(trainer.plan(), rank);
    outcomes[static_cast<size_t>(rank)] = train(trainer, *set, epochs);
  });
  return outcomes;
}

template <class Data>
Outcome train_alone(const Model& model, TrainerOptions options, int ranks, const Data& data) {
  const auto env = real_env();
  options.strategy.accumulate = ranks;
  Trainer trainer(*env, model, options);
  std::vector<std::unique_ptr<Dataset>> sets;
  for (int rank = 0; rank < ranks; ++rank) sets.push_back(data(trainer.plan(), rank));
  InTurn all(std::move(sets));
  return train(trainer, all);
}

/// Compares the losses of the first steps, averaged over ranks, with those of one process.
inline void expect_losses(const std::vector<Outcome>& ranks, const Outcome& alone,
                          double tolerance) {
  for (size_t i = 0; i < kBatches; ++i) {
    double mean = 0;
    for (const Outcome& rank : ranks) mean += rank.losses[i] / static_cast<double>(ranks.size());
    EXPECT_NEAR(mean, alone.losses[i], tolerance * alone.losses[i]) << "step " << i;
  }
}

inline std::unique_ptr<Dataset> dense_of(const Plan&, int rank) { return dense_data(rank); }

/// Two tables over the same slots.
inline ModelOutputs sparse_model(Builder& g) {
  const std::vector<std::string> slots = {"a", "b"};
  const Var label = g.input("label", {{-1, 1}});
  const Var wide = nn::sum_slots(nn::embedding(g, slots, "wide", 1), 1);
  const Var rows = nn::embedding(g, slots, "rows", 4, {.init = "uniform(-0.3, 0.3)"});
  const Var x = nn::concat(std::array{rows, g.input("x", {{-1, 2}})});
  const Var hidden = nn::mlp(x, std::array<int64_t, 2>{32, 16}, "relu", "fc");
  const Var logit = wide + nn::linear(hidden, 1, "out");
  return {.loss = nn::logistic_loss(logit, label)};
}

/// Clicks, whose keys overlap between ranks.
class SparseRanks : public testing::Test {
 protected:
  SparseRanks() {
    for (uint64_t rank = 0; rank < 3; ++rank) {
      const RandomStream random(7 + rank);
      std::string text;
      for (uint64_t i = 0; i < kBatch * kBatches; ++i)
        text += "1 " + std::to_string(random.below(3 * i, 90)) + " 1 " +
                std::to_string(random.below(3 * i + 1, 90)) + " 2 0.25 " +
                std::to_string(random.uniform(3 * i + 2)) + " 1 " + (i % 3 == 0 ? "1\n" : "0\n");
      files_.push_back(folder_.write("part-" + std::to_string(rank), text));
    }
  }
  auto data() const {
    return [this](const Plan& plan, int rank) {
      return clicks_in(files_[static_cast<size_t>(rank)], plan, kBatch);
    };
  }
  /// Batch t is batch t of every rank.
  std::unique_ptr<Dataset> large_clicks(const Plan& plan, size_t ranks) {
    std::vector<std::ifstream> parts(files_.begin(), files_.begin() + static_cast<int>(ranks));
    std::string text, line;
    for (size_t t = 0; t < kBatches; ++t)
      for (std::ifstream& part : parts)
        for (size_t i = 0; i < kBatch && std::getline(part, line); ++i) text += line + "\n";
    return clicks_in(folder_.write("large", text), plan, kBatch * ranks);
  }
  static std::unique_ptr<Dataset> clicks_in(const std::string& file, const Plan& plan,
                                            size_t batch) {
    return std::make_unique<QueueDataset>(plan.layout,
                                          FileOptions{.files = {file},
                                                      .slots = {{"a", SlotKind::ids, 1},
                                                                {"b", SlotKind::ids, 1},
                                                                {"x", SlotKind::floats, 2},
                                                                {"label", SlotKind::floats, 1}},
                                                      .batch_size = batch});
  }

  TestFolder folder_;
  std::vector<std::string> files_;
};

}  // namespace argosy

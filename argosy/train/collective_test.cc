// Ranks that train together, as threads of this process or as processes of their own, against one
// process that accumulates the same batches.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/comm/test_rank_process.h"
#include "argosy/data/file_dataset.h"
#include "argosy/net/env.h"
#include "argosy/nn/layers.h"
#include "argosy/train/test_outcomes.h"
#include "argosy/train/trainer.h"

namespace argosy {
namespace {

constexpr size_t kBatch = 8, kBatches = 20;  // of each rank

ModelOutputs dense_model(Builder& g) {
  const Var x = g.input("x", {{-1, 12}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  const Var hidden = nn::mlp(x, std::array<int64_t, 2>{40, 24}, "relu", "fc");
  const Var logits = nn::linear(nn::dropout(hidden, 0.2), 3, "out");
  return {.loss = nn::softmax_loss(logits, label),
          .metrics = {{"acc", nn::accuracy(logits, label)}}};
}

ModelOutputs plain_model(Builder& g, int64_t hidden) {
  const Var x = g.input("x", {{-1, 12}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  const Var h = nn::mlp(x, std::array<int64_t, 1>{hidden}, "tanh", "fc");
  return {.loss = nn::softmax_loss(nn::linear(h, 3, "out"), label)};
}
ModelOutputs plain(Builder& g) { return plain_model(g, 16); }

/// Two tables over the same slots.
ModelOutputs sparse_model(Builder& g) {
  const std::vector<std::string> slots = {"a", "b"};
  const Var label = g.input("label", {{-1, 1}});
  const Var wide = nn::sum_slots(nn::embedding(g, slots, "wide", 1), 1);
  const Var rows = nn::embedding(g, slots, "rows", 4, {.init = "uniform(-0.3, 0.3)"});
  const Var x = nn::concat(std::array{rows, g.input("x", {{-1, 2}})});
  const Var hidden = nn::mlp(x, std::array<int64_t, 2>{32, 16}, "relu", "fc");
  const Var logit = wide + nn::linear(hidden, 1, "out");
  return {.loss = nn::logistic_loss(logit, label)};
}

/// Instances of a rank; the label follows from the values.
Feeds arrays_of(int rank, size_t rows) {
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

std::unique_ptr<Dataset> dense_data(int rank, size_t batches = kBatches, size_t batch = kBatch) {
  return array_dataset(arrays_of(rank, batches * batch), {.batch_size = batch, .shuffle = false});
}

Outcome train(Trainer& trainer, Dataset& data, int epochs = 2) {
  std::vector<double> losses;
  trainer.fit(data, {.epochs = epochs,
                     .on_step =
                         [&](const Progress& progress) {
                           losses.push_back(progress.metric("loss"));
                           return Next::go_on;
                         },
                     .show = nullptr});
  trainer.leave();
  Outcome result = outcome_of(trainer);
  result.losses = std::move(losses);
  return result;
}

double greatest_difference(const Outcome& a, const Outcome& b) {
  double worst = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i].value.dtype() != DType::f32) continue;
    const auto x = a.values[i].value.as<float>(), y = b.values[i].value.as<float>();
    for (size_t j = 0; j < x.size(); ++j)
      worst = std::max(worst, std::abs(static_cast<double>(x[j]) - static_cast<double>(y[j])));
  }
  return worst;
}

TrainerOptions options_of(const std::string& rule, GraphMode graph = GraphMode::recorded) {
  TrainerOptions result;
  result.optimizer = {.rule = rule, .learning_rate = "0.02"};
  result.graph = graph;
  result.seed = 5;
  return result;
}

using Change = std::function<void(TrainerOptions&, int rank)>;

/// What each rank of a group has made with `data(rank)`.
template <class Data>
std::vector<Outcome> train_ranks(const Model& model, const TrainerOptions& options, int ranks,
                                 const Data& data, const Change& change = {},
                                 const std::string& backend = "inproc", int epochs = 2) {
  const auto env = real_env();
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  TestRanks test(ranks);
  auto groups = inproc_groups(*env, ranks, std::chrono::seconds(60));
  on_threads(ranks, [&](int rank) {
    std::shared_ptr<Group> group = std::move(groups[static_cast<size_t>(rank)]);
    if (backend != "inproc") {
      GroupOptions own = test.options(rank, backend);
      own.deterministic = true;
      group = connect_group(*env, own);
    }
    TrainerOptions own = options;
    own.strategy.mode = "collective";
    own.connect = [&](const Plan&) { return Wires{.servers = {}, .group = group}; };
    if (change) change(own, rank);
    Trainer trainer(*env, model, own);
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

std::unique_ptr<Dataset> dense_of(const Plan&, int rank) { return dense_data(rank); }

const Change kDeterministic = [](TrainerOptions& options, int) {
  options.strategy.collective.deterministic = true;
  options.strategy.collective.bucket_mb = 0.001;
};

struct RanksTest : testing::TestWithParam<std::tuple<int, GraphMode>> {
  int ranks() const { return std::get<0>(GetParam()); }
  GraphMode graph() const { return std::get<1>(GetParam()); }
};

TEST_P(RanksTest, GiveTheBitsOfOneProcessThatAccumulates) {
  for (const char* rule : {"sgd", "adam"}) {
    const TrainerOptions options = options_of(rule, graph());
    const Outcome alone = train_alone(dense_model, options, ranks(), dense_of);
    const auto together = train_ranks(dense_model, options, ranks(), dense_of, kDeterministic);
    for (const Outcome& rank : together) expect_same_bits(alone, rank);
    for (size_t i = 0; i < kBatches; ++i)
      EXPECT_EQ(alone.losses[i * static_cast<size_t>(ranks())], together[0].losses[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Collective, RanksTest,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Values(GraphMode::recorded, GraphMode::eager)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == GraphMode::recorded ? "Recorded"
                                                                                  : "Eager");
                         });

TEST(Collective, EveryBackendGivesTheBitsOfOneProcess) {
  const TrainerOptions options = options_of("adam");
  const Outcome alone = train_alone(dense_model, options, 3, dense_of);
  for (const char* backend : {"shm", "tcp"}) {
    const auto together = train_ranks(dense_model, options, 3, dense_of, kDeterministic, backend);
    for (const Outcome& rank : together) expect_same_bits(alone, rank);
  }
}

TEST(Collective, TheFastWayIsAsGoodUpToRounding) {
  const TrainerOptions options = options_of("sgd");
  const Outcome alone = train_alone(dense_model, options, 3, dense_of);
  const auto together = train_ranks(dense_model, options, 3, dense_of);
  EXPECT_LT(greatest_difference(alone, together[0]), 1e-5);
  expect_same_bits(together[0], together[1]);
  expect_same_bits(together[0], together[2]);
}

TEST(Collective, TheFirstLossesAreThoseOfTheLargeBatch) {
  constexpr int kRanks = 2;
  const auto env = real_env();
  for (const auto& [rule, tolerance] : {std::pair{"sgd", 1e-5}, std::pair{"adam", 1e-4}}) {
    // Batch t of the large data set is batch t of every rank.
    Feeds large = {{"x", Tensor({kRanks * kBatch * kBatches, 12})},
                   {"label", Tensor({kRanks * kBatch * kBatches, 1}, DType::i64)}};
    for (int rank = 0; rank < kRanks; ++rank) {
      const Feeds part = arrays_of(rank, kBatch * kBatches);
      for (const auto& [name, array] : part) {
        const size_t bytes = array.bytes() / kBatches;
        for (size_t t = 0; t < kBatches; ++t)
          std::memcpy(large.at(name).data() + (t * kRanks + static_cast<size_t>(rank)) * bytes,
                      array.data() + t * bytes, bytes);
      }
    }
    Trainer trainer(*env, plain, options_of(rule));
    const auto data = array_dataset(large, {.batch_size = kRanks * kBatch, .shuffle = false});
    const Outcome alone = train(trainer, *data);
    const auto together = train_ranks(plain, options_of(rule), kRanks, dense_of);
    for (size_t i = 0; i < kBatches; ++i) {
      const double mean = (together[0].losses[i] + together[1].losses[i]) / kRanks;
      EXPECT_NEAR(mean, alone.losses[i], tolerance * alone.losses[i]) << rule << " step " << i;
    }
  }
}

/// One process makes steps of two batches while both ranks have some, then of one.
TEST(Collective, RanksWithoutDataCountForNothing) {
  constexpr size_t kShort = 7;
  const auto data = [](const Plan&, int rank) {
    return dense_data(rank, rank == 0 ? kBatches : kShort);
  };
  const TrainerOptions options = options_of("adam");
  const auto env = real_env();
  const TestFolder folder;
  TrainerOptions two = options;
  two.strategy.accumulate = 2;
  {
    Trainer trainer(*env, plain, two);
    std::vector<std::unique_ptr<Dataset>> sets;
    for (int rank = 0; rank < 2; ++rank) sets.push_back(dense_data(rank, kShort));
    InTurn both(std::move(sets));
    train(trainer, both, 1);
    trainer.save(folder.path() + "/both");
  }
  Trainer trainer(*env, plain, options);
  trainer.load(folder.path() + "/both");
  const auto rest = dense_data(0);
  rest->begin_epoch(0, {.batches = kShort, .files = {}});
  Batch batch;
  while (rest->next(batch)) trainer.step(batch);
  const Outcome alone = outcome_of(trainer);

  const auto together = train_ranks(plain, options, 2, data, kDeterministic, "inproc", 1);
  EXPECT_EQ(together[1].losses.size(), kShort);
  for (const Outcome& rank : together) expect_same_bits(alone, rank);
}

TEST(Collective, ParametersBeginAsThoseOfTheFirstRank) {
  const TrainerOptions options = options_of("adam");
  const Outcome alone = train_alone(plain, options, 2, dense_of);
  const auto together = train_ranks(plain, options, 2, dense_of, [](TrainerOptions& own, int rank) {
    own.strategy.collective.deterministic = true;
    own.seed = 5 + static_cast<uint64_t>(rank);
  });
  for (const Outcome& rank : together) expect_same_bits(alone, rank);
}

std::string refusal(const Model& model, const Change& change) {
  return message_of<ConfigError>(
      [&] { train_ranks(model, options_of("sgd"), 2, dense_of, change); });
}

TEST(Collective, RanksThatTrainDifferentThingsAreRefused) {
  EXPECT_EQ(
      refusal(plain,
              [](TrainerOptions& own, int rank) {
                if (rank == 1) own.optimizer.rule = "adam";
              }),
      "ranks 0 and 1 do not train the same: line 28 is 'table 0 fc.0.w 192 floats in blocks of "
      "192 rule=\"sgd\" lr=\"0.02\"' on rank 0 and 'table 0 fc.0.w 192 floats in blocks of 192 "
      "rule=\"adam\" lr=\"0.02\"' on rank 1");
  EXPECT_EQ(
      refusal(plain, [](TrainerOptions& own,
                        int rank) { own.strategy.collective.bucket_mb = rank == 0 ? 1 : 0.0001; }),
      "ranks 0 and 1 do not train the same: line 2 is 'bucket of 288 floats: out.b out.w fc.0.b "
      "fc.0.w' on rank 0 and 'bucket of 32 floats: out.b' on rank 1");
}

TEST(Collective, ADivergenceNamesTheParameterAndTheRanks) {
  const auto env = real_env();
  auto groups = inproc_groups(*env, 3, std::chrono::seconds(60));
  std::array<std::string, 3> messages;
  on_threads(3, [&](int rank) {
    const std::shared_ptr<Group> group = std::move(groups[static_cast<size_t>(rank)]);
    TrainerOptions own = options_of("sgd");
    own.strategy.mode = "collective";
    own.strategy.collective.check_every = 5;
    own.connect = [&](const Plan&) { return Wires{.servers = {}, .group = group}; };
    Trainer trainer(*env, plain, own);
    const auto data = dense_data(rank);
    messages[static_cast<size_t>(rank)] = message_of<DataError>([&] {
      trainer.fit(*data,
                  {.on_step =
                       [&](const Progress& progress) {
                         if (rank == 1 && progress.step == 7)
                           trainer.communicator().store().persistables()[0].value.as<float>()[3] +=
                               1;
                         return Next::go_on;
                       },
                   .show = nullptr});
    });
  });
  for (const std::string& message : messages) {
    EXPECT_NE(message.find("is not the same on all ranks after step 10: "), std::string::npos)
        << message;
    EXPECT_NE(message.find("ranks 0, 2 have"), std::string::npos) << message;
    EXPECT_NE(message.find("rank 1 has"), std::string::npos) << message;
  }
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
    return [this](const Plan& plan, int rank) -> std::unique_ptr<Dataset> {
      return std::make_unique<QueueDataset>(
          plan.layout, FileOptions{.files = {files_[static_cast<size_t>(rank)]},
                                   .slots = {{"a", SlotKind::ids, 1},
                                             {"b", SlotKind::ids, 1},
                                             {"x", SlotKind::floats, 2},
                                             {"label", SlotKind::floats, 1}},
                                   .batch_size = kBatch});
    };
  }

  TestFolder folder_;
  std::vector<std::string> files_;
};

TEST_F(SparseRanks, GiveTheBitsOfOneProcessThatAccumulates) {
  for (const int ranks : {1, 2, 3}) {
    const TrainerOptions options = options_of("adam");
    const Outcome alone = train_alone(sparse_model, options, ranks, data());
    const auto together = train_ranks(sparse_model, options, ranks, data(), kDeterministic);
    for (const Outcome& rank : together) expect_same_bits(alone, rank);
  }
}

TEST(CollectiveStrategies, SumIsTheMeanTimesTheRanks) {
  TrainerOptions options = options_of("sgd");
  options.optimizer.learning_rate = "0.02";
  const auto mean = train_ranks(plain, options, 2, dense_of);
  options.optimizer.learning_rate = "0.01";
  const auto sum = train_ranks(plain, options, 2, dense_of, [](TrainerOptions& own, int) {
    own.strategy.collective.scale = GradientScale::sum;
  });
  EXPECT_LT(greatest_difference(mean[0], sum[0]), 1e-6);
  EXPECT_GT(greatest_difference(mean[0], train_ranks(plain, options, 2, dense_of)[0]), 1e-4);
}

TEST(CollectiveStrategies, MergedBatchesMakeOneStep) {
  const TrainerOptions options = options_of("sgd");
  // 20 batches in steps of 3: the last step of each pass has 2.
  const auto merged = [&](int k, bool mean) {
    return train_ranks(plain, options, 2, dense_of, [&](TrainerOptions& own, int) {
      own.strategy.accumulate = k;
      own.strategy.accumulate_mean = mean;
    });
  };
  const auto three = merged(3, true);
  expect_same_bits(three[0], three[1]);
  EXPECT_EQ(three[0].values.back().value.as<int64_t>()[0], 14);  // steps of two passes
  const Outcome alone = train_alone(plain, options, 4, [](const Plan&, int turn) {
    // Batches 2t of both ranks, then 2t + 1.
    return share_of(dense_data(turn % 2), {static_cast<size_t>(turn / 2), 2});
  });
  EXPECT_LT(greatest_difference(alone, merged(2, true)[0]), 1e-6);
  EXPECT_GT(greatest_difference(alone, merged(2, false)[0]), 1e-4);
}

TEST(CollectiveStrategies, HalfFloatsOnTheWireChangeLittle) {
  const TrainerOptions options = options_of("sgd");
  const auto exact = train_ranks(plain, options, 3, dense_of);
  for (const auto& [wire, tolerance] : {std::pair{"bf16", 3e-3}, std::pair{"f16", 1e-3}}) {
    const auto rounded = train_ranks(plain, options, 3, dense_of, [&](TrainerOptions& own, int) {
      own.strategy.collective.wire = wire;
    });
    const double difference = greatest_difference(exact[0], rounded[0]);
    EXPECT_GT(difference, 0) << wire;
    EXPECT_LT(difference, tolerance) << wire;
    expect_same_bits(rounded[0], rounded[1]);
    expect_same_bits(rounded[0], rounded[2]);
  }
}

TEST(CollectiveStrategies, BucketsAndTheirTimeChangeNothing) {
  const TrainerOptions options = options_of("adam");
  const auto usual = train_ranks(plain, options, 2, dense_of);
  const std::vector<std::function<void(CollectiveStrategy&)>> changes = {
      [](CollectiveStrategy& own) { own.fuse = false; },
      [](CollectiveStrategy& own) { own.bucket_mb = 0.0005; },
      [](CollectiveStrategy& own) { own.overlap = Overlap::always; },
      [](CollectiveStrategy& own) { own.overlap = Overlap::never; }};
  for (const auto& change : changes)
    expect_same_bits(usual[0],
                     train_ranks(plain, options, 2, dense_of, [&](TrainerOptions& own, int) {
                       change(own.strategy.collective);
                     })[1]);
}

TEST(CollectiveProcesses, ARankThatIsKilledIsNamed) {
  constexpr int kRanks = 3, kKills = 4;
  const auto work = [](std::unique_ptr<Group> owned) {
    const std::shared_ptr<Group> group = std::move(owned);
    const auto env = real_env();
    TrainerOptions own = options_of("adam");
    own.strategy.mode = "collective";
    own.connect = [&](const Plan&) { return Wires{.servers = {}, .group = group}; };
    Trainer trainer(*env, dense_model, own);
    const auto data = dense_data(group->rank());
    trainer.fit(*data, {.epochs = 1'000'000, .show = nullptr});
  };
  const auto seed =
      static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const RandomStream random(seed);
  for (uint64_t round = 0; round < kKills; ++round) {
    TestRanks test(kRanks);
    std::vector<std::unique_ptr<RankProcess>> ranks;
    for (int rank = 0; rank < kRanks; ++rank)
      ranks.push_back(std::make_unique<RankProcess>(test, rank, "auto", work));
    for (Descriptor& socket : test.sockets) socket.reset();
    for (const auto& rank : ranks) ASSERT_TRUE(rank->is_connected());
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(2 * round, 200'000)));
    const auto victim = static_cast<int>(random.below(2 * round + 1, kRanks));
    ranks[static_cast<size_t>(victim)]->kill();
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim) continue;
      const std::string text =
          ranks[static_cast<size_t>(rank)]->last_words(std::chrono::seconds(10));
      EXPECT_NE(text.find("rank " + std::to_string(victim) + " ("), std::string::npos)
          << "rank " << rank << " says '" << text << "'";
    }
  }
}

}  // namespace
}  // namespace argosy

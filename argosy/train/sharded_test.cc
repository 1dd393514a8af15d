// Ranks that each have a part of the rows, against ranks that have all of them and against one
// process that accumulates the same batches.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/comm/test_rank_process.h"
#include "argosy/data/file_dataset.h"
#include "argosy/job/fleet.h"
#include "argosy/modes/ranks/sharded_store.h"
#include "argosy/nn/layers.h"
#include "argosy/train/predictor.h"
#include "argosy/train/test_outcomes.h"
#include "argosy/train/trainer.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

constexpr size_t kBatch = 8, kBatches = 20;  // of each rank

/// Two tables over the same slots and one over another.
ModelOutputs clicks(Builder& g) {
  const std::vector<std::string> slots = {"a", "b"}, user = {"user"};
  const Var label = g.input("label", {{-1, 1}});
  const Var wide = nn::sum_slots(nn::embedding(g, slots, "wide", 1), 1);
  const Var rows = nn::embedding(g, slots, "rows", 4, {.init = "uniform(-0.3, 0.3)"});
  const Var users = nn::embedding(g, user, "users", 3, {.init = "uniform(-0.3, 0.3)"});
  const Var hidden =
      nn::mlp(nn::concat(std::array{rows, users}), std::array<int64_t, 2>{16, 8}, "relu", "fc");
  const Var logit = wide + nn::linear(hidden, 1, "out");
  return {.loss = nn::logistic_loss(logit, label), .predictions = {{"logit", logit}}};
}

TrainerOptions options_of(const std::string& rule, GraphMode graph = GraphMode::recorded) {
  TrainerOptions result;
  result.optimizer = {.rule = rule, .learning_rate = "0.02"};
  result.graph = graph;
  result.seed = 5;
  return result;
}

using Change = std::function<void(TrainerOptions&)>;

void deterministic(TrainerOptions& options) { options.strategy.collective.deterministic = true; }
void sharded(TrainerOptions& options) {
  options.strategy.collective.embedding = EmbeddingMode::sharded;
}
void deterministic_and_sharded(TrainerOptions& options) {
  deterministic(options);
  sharded(options);
}

/// A rank's result: rows of all ranks in the first one, only its own in the others.
Outcome outcome_of_rank(Trainer& trainer, bool first) {
  if (trainer.sharded() == nullptr) return outcome_of(trainer);
  Outcome result;
  trainer.first_does(first, [&] { result = outcome_of(trainer); });
  if (first) return result;
  result.values = trainer.communicator().store().persistables();
  for (NamedTensor& tensor : result.values) tensor.value = tensor.value.clone();
  LocalStore& own = trainer.sharded()->own();
  for (const std::string& name : own.sparse_tables()) result.tables.push_back(own.rows(name));
  return result;
}

/// work(trainer, rank) on a thread for each rank.
template <class Work>
void on_ranks(int ranks, const TrainerOptions& options, const Work& work,
              const std::string& backend = "inproc") {
  const auto env = real_env();
  comm::TestRanks test(ranks);
  auto groups = comm::inproc_groups(*env, ranks, std::chrono::seconds(60));
  comm::on_threads(ranks, [&](int rank) {
    std::shared_ptr<comm::Group> group = std::move(groups[static_cast<size_t>(rank)]);
    if (backend != "inproc") {
      comm::GroupOptions own = test.options(rank, backend);
      own.deterministic = true;
      group = comm::connect_group(*env, own);
    }
    TrainerOptions own = options;
    own.strategy.mode = "collective";
    Trainer trainer(*env, clicks, own, wires_of(group));
    work(trainer, rank);
  });
}

/// Clicks, whose keys overlap between ranks.
class Sharded : public testing::Test {
 protected:
  static constexpr int kFiles = 4;

  Sharded() {
    for (uint64_t rank = 0; rank < kFiles; ++rank)
      files_.push_back(folder_.write("part-" + std::to_string(rank),
                                     lines(rank, kBatch * (rank == 2 ? kBatches / 2 : kBatches))));
    files_.push_back(folder_.write("short", lines(9, 3 * kBatch)));
  }

  static std::string lines(uint64_t part, size_t count) {
    const RandomStream random(7 + part);
    std::string text;
    for (uint64_t i = 0; i < count; ++i)
      text += "1 " + std::to_string(random.below(4 * i, 90)) + " 1 " +
              std::to_string(random.below(4 * i + 1, 90)) + " 1 " +
              std::to_string(random.below(4 * i + 2, 1000)) + " 1 " + (i % 3 == 0 ? "1\n" : "0\n");
    return text;
  }

  std::unique_ptr<Dataset> data(const Plan& plan, std::vector<std::string> files,
                                size_t batch = kBatch) const {
    return std::make_unique<QueueDataset>(plan.layout,
                                          FileOptions{.files = std::move(files),
                                                      .slots = {{"a", SlotKind::ids, 1},
                                                                {"b", SlotKind::ids, 1},
                                                                {"user", SlotKind::ids, 1},
                                                                {"label", SlotKind::floats, 1}},
                                                      .batch_size = batch});
  }
  std::unique_ptr<Dataset> even(const Plan& plan, int rank) const {
    return data(plan, {files_[rank == 2 ? 0 : static_cast<size_t>(rank)]});
  }
  /// Rank 2 has half of what the others have.
  std::unique_ptr<Dataset> uneven(const Plan& plan, int rank) const {
    return data(plan, {files_[static_cast<size_t>(rank)]});
  }

  std::vector<Outcome> train(int ranks, TrainerOptions options, const Change& change,
                             bool is_even = true, const std::string& backend = "inproc") const {
    change(options);
    std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
    on_ranks(
        ranks, options,
        [&](Trainer& trainer, int rank) {
          const auto set = is_even ? even(trainer.plan(), rank) : uneven(trainer.plan(), rank);
          std::vector<double> losses = fit(trainer, *set, 2);
          Outcome& outcome = outcomes[static_cast<size_t>(rank)];
          outcome = outcome_of_rank(trainer, rank == 0);
          outcome.losses = std::move(losses);
          trainer.leave();
        },
        backend);
    return outcomes;
  }

  Outcome train_alone(TrainerOptions options, int ranks) const {
    const auto env = real_env();
    options.strategy.accumulate = ranks;
    Trainer trainer(*env, clicks, options);
    std::vector<std::unique_ptr<Dataset>> sets;
    for (int rank = 0; rank < ranks; ++rank) sets.push_back(even(trainer.plan(), rank));
    InTurn all(std::move(sets));
    std::vector<double> losses = fit(trainer, all, 2);
    Outcome result = outcome_of(trainer);
    result.losses = std::move(losses);
    return result;
  }

  TestFolder folder_;
  std::vector<std::string> files_;
};

struct ShardedRanks : Sharded, testing::WithParamInterface<std::tuple<int, GraphMode>> {
  int ranks() const { return std::get<0>(GetParam()); }
  GraphMode graph() const { return std::get<1>(GetParam()); }
};

TEST_P(ShardedRanks, GiveTheBitsOfOneProcessThatAccumulates) {
  for (const char* rule : {"sgd", "adam"}) {
    const TrainerOptions options = options_of(rule, graph());
    const Outcome alone = train_alone(options, ranks());
    const auto together = train(ranks(), options, deterministic_and_sharded);
    expect_same_bits(alone, together[0]);
    for (size_t i = 0; i < 2 * kBatches; ++i)
      EXPECT_EQ(alone.losses[i * static_cast<size_t>(ranks())], together[0].losses[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Collective, ShardedRanks,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Values(GraphMode::recorded, GraphMode::eager)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == GraphMode::recorded ? "Recorded"
                                                                                  : "Eager");
                         });

TEST_F(Sharded, EveryBackendGivesTheBitsOfReplicatedRows) {
  const TrainerOptions options = options_of("adam");
  const auto replicated = train(3, options, deterministic);
  for (const char* backend : {"shm", "tcp"})
    expect_same_bits(replicated[0], train(3, options, deterministic_and_sharded, true, backend)[0]);
}

TEST_F(Sharded, EachRankHasThePartOfTheRowsThatItOwns) {
  constexpr int kRanks = 4;
  const auto together = train(kRanks, options_of("adam"), sharded);
  const ps::Placement placement = ps::place({}, {}, {}, kRanks);
  for (size_t table = 0; table < 3; ++table) {
    std::vector<size_t> rows(kRanks);
    for (const Key key : together[0].tables[table].keys) ++rows[placement.server_of(key)];
    for (size_t rank = 1; rank < kRanks; ++rank) {
      EXPECT_EQ(together[rank].tables[table].keys.size(), rows[rank]);
      for (const Key key : together[rank].tables[table].keys)
        EXPECT_EQ(placement.server_of(key), rank);
    }
    const double share = static_cast<double>(together[0].tables[table].keys.size()) / kRanks;
    for (const size_t held : rows) EXPECT_NEAR(static_cast<double>(held), share, 0.5 * share);
  }
}

TEST_F(Sharded, RanksWithoutDataServeTheOthers) {
  const TrainerOptions options = options_of("adam");
  const auto replicated = train(3, options, deterministic, false);
  const auto together = train(3, options, deterministic_and_sharded, false);
  EXPECT_EQ(together[2].losses.size(), kBatches);  // half of two passes
  expect_same_bits(replicated[0], together[0]);
}

TEST_F(Sharded, MergedBatchesMakeTheSameSteps) {
  const auto merged = [&](const Change& change, bool is_even) {
    return train(
        3, options_of("adam"),
        [&](TrainerOptions& own) {
          change(own);
          own.strategy.accumulate = 3;  // of 20 and of 10 batches: a rest is left
        },
        is_even)[0];
  };
  expect_same_bits(merged(deterministic, true), merged(deterministic_and_sharded, true));
  expect_same_bits(merged(deterministic, false), merged(deterministic_and_sharded, false));
}

TEST_F(Sharded, TheFirstLossesAreThoseOfTheLargeBatch) {
  const auto env = real_env();
  for (const auto& [rule, tolerance] : {std::pair{"sgd", 1e-5}, std::pair{"adam", 1e-4}}) {
    std::string both;  // batch t of the first rank, then of the second
    std::array<std::string, 2> parts = {lines(0, kBatch * kBatches), lines(1, kBatch * kBatches)};
    std::array<size_t, 2> at = {};
    for (size_t t = 0; t < kBatches; ++t)
      for (size_t rank = 0; rank < 2; ++rank)
        for (size_t i = 0; i < kBatch; ++i) {
          const size_t end = parts[rank].find('\n', at[rank]) + 1;
          both += parts[rank].substr(at[rank], end - at[rank]);
          at[rank] = end;
        }
    Trainer trainer(*env, clicks, options_of(rule));
    const auto large = data(trainer.plan(), {folder_.write("both", both)}, 2 * kBatch);
    const std::vector<double> alone = fit(trainer, *large, 1);
    const auto together = train(2, options_of(rule), sharded);
    for (size_t i = 0; i < kBatches; ++i) {
      const double mean = (together[0].losses[i] + together[1].losses[i]) / 2;
      EXPECT_NEAR(mean, alone[i], tolerance * alone[i]) << rule << " step " << i;
    }
  }
}

TEST_F(Sharded, OwnersCountForTheEntriesOfTables) {
  for (const char* entry : {"count_filter(3)", "probability(0.5)", "show_click(a, b)"}) {
    TrainerOptions options = options_of("adam");
    options.tables["rows"].entry = entry;
    const Outcome alone = train_alone(options, 2);
    expect_same_bits(alone, train(2, options, deterministic_and_sharded)[0]);
    EXPECT_NE(message_of<ConfigError>([&] {
                train(2, options, deterministic);
              }).find("expected none, or embedding_mode: sharded"),
              std::string::npos);
  }
}

/// Rank 1 ends its pass when its keys of the next batch are on their way.
TEST_F(Sharded, ABatchThatIsNotTrainedOnChangesNoRow) {
  const auto stopped = [&](const Change& change) {
    TrainerOptions options = options_of("adam");
    change(options);
    Outcome result;
    on_ranks(2, options, [&](Trainer& trainer, int rank) {
      const auto set = even(trainer.plan(), rank);
      trainer.fit(*set, {.on_step =
                             [&](const Progress& progress) {
                               return rank == 1 && progress.step == 5 ? Next::stop : Next::go_on;
                             },
                         .show = nullptr});
      Outcome own = outcome_of_rank(trainer, rank == 0);
      if (rank == 0) result = std::move(own);
    });
    return result;
  };
  const Outcome replicated = stopped(deterministic), shards = stopped(deterministic_and_sharded);
  for (size_t table = 0; table < 3; ++table) {
    const TableRows &all = shards.tables[table], &rows = replicated.tables[table];
    const auto dim = static_cast<size_t>(all.rows.shape()[1]);
    for (size_t i = 0; i < rows.keys.size(); ++i) {
      const auto found = std::ranges::lower_bound(all.keys, rows.keys[i]);
      ASSERT_TRUE(found != all.keys.end() && *found == rows.keys[i]);
      const auto at = static_cast<size_t>(found - all.keys.begin());
      for (size_t j = 0; j < dim; ++j)
        EXPECT_EQ(all.rows.as<float>()[at * dim + j], rows.rows.as<float>()[i * dim + j]);
    }
  }
}

TEST_F(Sharded, ASaveIsLoadedByAnyNumberOfRanksAndByOne) {
  const auto env = real_env();
  const std::string dir = folder_.path() + "/model", exported = folder_.path() + "/exported";
  TrainerOptions options = options_of("adam");
  sharded(options);
  double loss = 0;
  on_ranks(3, options, [&](Trainer& trainer, int rank) {
    const auto set = even(trainer.plan(), rank);
    fit(trainer, *set, 1);
    trainer.first_does(rank == 0, [&] {
      trainer.save(dir, {.epoch = 2});
      trainer.export_inference(exported);
      loss = trainer.evaluate(*data(trainer.plan(), {files_.back()}))[0].value;
    });
    trainer.leave();
  });
  EXPECT_TRUE(env->file_exists(dir + "/rows.1.2-of-3.rows"));

  Trainer one(*env, clicks, options_of("adam"));
  EXPECT_EQ(one.load(dir).epoch, 2);
  const auto test = data(one.plan(), {files_.back()});
  EXPECT_EQ(one.evaluate(*test)[0].value, loss);
  const Outcome loaded = outcome_of(one);

  Predictor predictor(*env, exported);
  Batch batch;
  test->begin_epoch(0);
  ASSERT_TRUE(test->next(batch));
  const Tensor predicted = predictor.run(batch).at("logit").clone();
  const std::array<VarId, 1> logit = {one.plan().worker.find("logit")};
  const Tensor expected = one.infer(batch, logit)[0];
  ASSERT_EQ(predicted.numel(), expected.numel());
  for (size_t i = 0; i < predicted.as<float>().size(); ++i)
    EXPECT_EQ(predicted.as<float>()[i], expected.as<float>()[i]);

  on_ranks(2, options, [&](Trainer& trainer, int rank) {
    trainer.first_does(rank == 0, [&] { trainer.load(dir); });
    trainer.take_loaded();
    const Outcome outcome = outcome_of_rank(trainer, rank == 0);
    if (rank == 0) expect_same_bits(loaded, outcome);
    trainer.first_does(rank == 0, [&] { trainer.save(dir, {.epoch = 2}); });
    trainer.leave();
  });
  EXPECT_FALSE(env->file_exists(dir + "/rows.1.2-of-3.rows"));
  one.load(dir);
  expect_same_bits(loaded, outcome_of(one));
}

TEST_F(Sharded, RanksEvaluateDifferentNumbersOfBatches) {
  TrainerOptions options = options_of("sgd");
  deterministic_and_sharded(options);
  const Outcome alone = train_alone(options_of("sgd"), 2);
  std::array<double, 2> losses = {};
  const std::string dir = folder_.path() + "/model";
  on_ranks(2, options, [&](Trainer& trainer, int rank) {
    const auto set = even(trainer.plan(), rank);
    const auto test = data(trainer.plan(), {rank == 0 ? files_.back() : files_[3]});
    trainer.fit(*set, {.epochs = 2, .test = test.get(), .show = nullptr});
    losses[static_cast<size_t>(rank)] = trainer.evaluate(*test)[0].value;
    trainer.first_does(rank == 0, [&] { trainer.save(dir); });
    trainer.leave();
  });
  const auto env = real_env();
  Trainer one(*env, clicks, options_of("sgd"));
  one.load(dir);
  expect_same_bits(alone, outcome_of(one));  // evaluations have made no rows
  EXPECT_EQ(one.evaluate(*data(one.plan(), {files_.back()}))[0].value, losses[0]);
  EXPECT_EQ(one.evaluate(*data(one.plan(), {files_[3]}))[0].value, losses[1]);
}

TEST_F(Sharded, WhatNeedsAllRanksIsRefusedToOne) {
  TrainerOptions options = options_of("sgd");
  sharded(options);
  std::array<std::string, 2> messages;
  on_ranks(2, options, [&](Trainer& trainer, int rank) {
    messages[static_cast<size_t>(rank)] =
        message_of<ConfigError>([&] { trainer.communicator().store().rows("wide"); });
  });
  EXPECT_EQ(messages[1],
            "rows: the rows are on all 2 ranks (embedding_mode: sharded), and rank 1 asks for them "
            "by itself; expected a call that every rank makes, such as fleet.save_persistables");
  EXPECT_NE(messages[0].find("rank 0 asks"), std::string::npos) << messages[0];
}

TEST(ShardedStrategy, IsOneOfTwoWords) {
  DistributedStrategy strategy;
  EXPECT_EQ(collective_strategy_of(strategy).collective.embedding, EmbeddingMode::replicated);
  strategy.embedding_mode = "sharded";
  EXPECT_EQ(collective_strategy_of(strategy).collective.embedding, EmbeddingMode::sharded);
  EXPECT_EQ(message_of<ConfigError>([&] { strategy_of(strategy); }),
            "strategy.embedding_mode is for ranks that train without servers, and there are "
            "servers");
  strategy.embedding_mode = "split";
  EXPECT_EQ(message_of<ConfigError>([&] { collective_strategy_of(strategy); }),
            "embedding_mode is 'split', expected replicated or sharded");
}

TEST_F(Sharded, RanksThatDisagreeAreRefused) {
  const auto env = real_env();
  auto groups = comm::inproc_groups(*env, 2, std::chrono::seconds(60));
  std::array<std::string, 2> messages;
  comm::on_threads(2, [&](int rank) {
    const std::shared_ptr<comm::Group> group = std::move(groups[static_cast<size_t>(rank)]);
    TrainerOptions own = options_of("sgd");
    own.strategy.mode = "collective";
    if (rank == 1) sharded(own);
    messages[static_cast<size_t>(rank)] =
        message_of<ConfigError>([&] { Trainer trainer(*env, clicks, own, wires_of(group)); });
  });
  for (const std::string& message : messages)
    EXPECT_NE(message.find("seed 5, replicated' on rank 0"), std::string::npos) << message;
}

/// In the middle of exchanges: there is nothing else that these ranks do.
TEST_F(Sharded, ARankThatIsKilledIsNamed) {
  const auto work = [this](std::unique_ptr<comm::Group> owned) {
    const std::shared_ptr<comm::Group> group = std::move(owned);
    const auto env = real_env();
    TrainerOptions own = options_of("adam");
    sharded(own);
    own.strategy.mode = "collective";
    Trainer trainer(*env, clicks, own, wires_of(group));
    const auto set = even(trainer.plan(), group->rank());
    trainer.fit(*set, {.epochs = 1'000'000, .show = nullptr});
  };
  comm::kill_at_random(work);
}

}  // namespace
}  // namespace argosy

// Ranks that train together, as threads of this process or as child processes, against one process
// that accumulates the same batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "argosy/comm/test_rank_process.h"
#include "argosy/modes/local_store.h"
#include "argosy/train/test_ranks.h"

namespace argosy {
namespace {

ModelOutputs dense_model(Builder& g) {
  const Var x = g.input("x", {{-1, 12}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  const Var hidden = nn::mlp(x, std::array<int64_t, 2>{40, 24}, "relu", "fc");
  const Var logits = nn::linear(nn::dropout(hidden, 0.2), 3, "out");
  return {.loss = nn::softmax_loss(logits, label),
          .metrics = {{"acc", nn::accuracy(logits, label)}}};
}

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

struct LargeBatch : testing::TestWithParam<std::tuple<int, GraphMode>> {
  int ranks() const { return std::get<0>(GetParam()); }
  GraphMode graph() const { return std::get<1>(GetParam()); }
};

constexpr std::array kTolerances = {std::pair{"sgd", 1e-5}, std::pair{"adam", 1e-4}};

TEST_P(LargeBatch, HasTheFirstLossesOfRanksThatTrainAnMlp) {
  const auto env = real_env();
  for (const auto& [rule, tolerance] : kTolerances) {
    Trainer trainer(*env, plain, options_of(rule, graph()));
    const Outcome alone = train(trainer, *large_data(ranks()));
    expect_losses(train_ranks(plain, options_of(rule, graph()), ranks(), dense_of), alone,
                  tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Collective, LargeBatch,
                         testing::Combine(testing::Values(2, 3),
                                          testing::Values(GraphMode::recorded, GraphMode::eager)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == GraphMode::recorded ? "Recorded"
                                                                                  : "Eager");
                         });

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
  EXPECT_EQ(refusal(plain,
                    [](TrainerOptions& own, int rank) {
                      if (rank == 1) own.optimizer.rule = "adam";
                    }),
            "ranks 0 and 1 do not train the same: line 28 is 'parameter 0 fc.0.w 192 floats "
            "rule=\"sgd\" lr=\"0.02\"' on rank 0 and 'parameter 0 fc.0.w 192 floats "
            "rule=\"adam\" lr=\"0.02\"' on rank 1");
  EXPECT_EQ(
      refusal(plain, [](TrainerOptions& own,
                        int rank) { own.strategy.collective.bucket_mb = rank == 0 ? 1 : 0.0001; }),
      "ranks 0 and 1 do not train the same: line 2 is 'bucket of 288 floats: out.b out.w fc.0.b "
      "fc.0.w' on rank 0 and 'bucket of 32 floats: out.b' on rank 1");
}

/// The error shows both ranks' version of each setting.
TEST(Collective, RanksWithOtherStrategiesAreRefused) {
  const auto first_line = [](const char* rank_0, const char* rank_1) {
    return std::string("ranks 0 and 1 do not train the same: line 1 is 'collective: ") + rank_0 +
           "' on rank 0 and 'collective: " + rank_1 + "' on rank 1";
  };
  constexpr const char* kUsual =
      "gradients mean, sent as f32, 1 batch a step (mean), compared every 100 steps";
  const auto refused = [&](const std::function<void(Strategy&)>& change) {
    return refusal(plain, [&](TrainerOptions& own, int rank) {
      if (rank == 1) change(own.strategy);
    });
  };
  EXPECT_EQ(refused([](Strategy& own) { own.accumulate = 4; }),
            first_line(kUsual,
                       "gradients mean, sent as f32, 4 batches a step (mean), compared "
                       "every 100 steps"));
  EXPECT_EQ(refused([](Strategy& own) { own.collective.wire = "f16"; }),
            first_line(kUsual,
                       "gradients mean, sent as f16, 1 batch a step (mean), compared "
                       "every 100 steps"));
  EXPECT_EQ(refused([](Strategy& own) { own.collective.scale = GradientScale::sum; }),
            first_line(kUsual,
                       "gradients sum, sent as f32, 1 batch a step (mean), compared every "
                       "100 steps"));
  EXPECT_EQ(refused([](Strategy& own) { own.collective.deterministic = true; }),
            first_line(kUsual,
                       "gradients mean deterministic, sent as f32, 1 batch a step (mean), "
                       "compared every 100 steps"));
  EXPECT_EQ(refused([](Strategy& own) { own.collective.check_every = 7; }),
            first_line(kUsual,
                       "gradients mean, sent as f32, 1 batch a step (mean), compared "
                       "every 7 steps"));
}

/// How each of two ranks ends if rank 1 alone goes wrong: the error, or "" if it succeeded.
std::array<std::string, 2> ends_of(const std::function<void(Trainer&, int rank)>& work,
                                   const Change& change = {}) {
  const auto env = real_env();
  auto groups = comm::inproc_groups(*env, 2, std::chrono::seconds(60));
  std::array<std::string, 2> ends;
  comm::on_threads(2, [&](int rank) {
    std::shared_ptr<comm::Group> group = std::move(groups[static_cast<size_t>(rank)]);
    TrainerOptions own = options_of("sgd");
    own.strategy.mode = "collective";
    if (change) change(own, rank);
    try {
      Trainer trainer(*env, plain, own, wires_of(std::exchange(group, nullptr)));
      work(trainer, rank);
    } catch (const std::exception& e) {
      ends[static_cast<size_t>(rank)] = e.what();
    }
  });
  return ends;
}

TEST(Collective, ARankThatFailsInTheMiddleOfBackwardIsNamed) {
  const auto ends = ends_of([](Trainer& trainer, int rank) {
    Feeds arrays = arrays_of(rank, kBatch * kBatches);
    if (rank == 1) arrays.at("x").as<float>()[5 * kBatch * 12] = NAN;
    const auto data = array_dataset(arrays, {.batch_size = kBatch, .shuffle = false});
    train(trainer, *data);
  });
  EXPECT_TRUE(ends[1].starts_with("step 12: the loss is not finite: nan")) << ends[1];
  EXPECT_NE(ends[1].find("first: input 'x' had nan at 0 of "), std::string::npos) << ends[1];
  EXPECT_NE(ends[0].find("rank 1 has left"), std::string::npos) << ends[0];
}

TEST(Collective, ARankThatTrainsFewerPassesIsNamed) {
  const auto ends = ends_of([](Trainer& trainer, int rank) {
    const auto data = dense_data(rank);
    trainer.fit(*data, {.epochs = rank == 0 ? 3 : 1, .show = nullptr});
  });
  EXPECT_EQ(ends[1], "");
  EXPECT_NE(ends[0].find("rank 1 has left"), std::string::npos) << ends[0];
}

/// It takes part in the steps of the others until the pass ends.
TEST(Collective, ARankThatStopsEarlyHoldsNobodyUp) {
  const auto ends = ends_of([](Trainer& trainer, int rank) {
    const auto data = dense_data(rank);
    trainer.fit(*data, {.on_step =
                            [&](const Progress& progress) {
                              return rank == 1 && progress.step == 3 ? Next::stop : Next::go_on;
                            },
                        .show = nullptr});
  });
  EXPECT_EQ(ends, (std::array<std::string, 2>{}));
}

TEST(Collective, ADivergenceNamesTheParameterAndTheRanks) {
  const auto env = real_env();
  auto groups = comm::inproc_groups(*env, 3, std::chrono::seconds(60));
  std::array<std::string, 3> messages;
  comm::on_threads(3, [&](int rank) {
    const std::shared_ptr<comm::Group> group = std::move(groups[static_cast<size_t>(rank)]);
    TrainerOptions own = options_of("sgd");
    own.strategy.mode = "collective";
    own.strategy.collective.check_every = 5;
    Trainer trainer(*env, plain, own, wires_of(group));
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

TEST_F(SparseRanks, GiveTheBitsOfOneProcessThatAccumulates) {
  for (const int ranks : {1, 2, 3}) {
    const TrainerOptions options = options_of("adam");
    const Outcome alone = train_alone(sparse_model, options, ranks, data());
    const auto together = train_ranks(sparse_model, options, ranks, data(), kDeterministic);
    for (const Outcome& rank : together) expect_same_bits(alone, rank);
  }
}

/// On this rank alone.
void disturb_rows(Trainer& trainer, const std::string& table) {
  auto& store = dynamic_cast<LocalStore&>(trainer.communicator().store());
  TableRows rows = store.rows(table);
  for (float& value : rows.rows.as<float>()) value += 1;
  const auto spec = std::ranges::find(trainer.plan().tables, table, &ps::TableSpec::name);
  store.table(static_cast<size_t>(spec - trainer.plan().tables.begin()))
      .assign(rows.keys, rows.rows.as<float>());
}

/// Rows that were pushed are compared at the next look, long before the pass ends.
TEST_F(SparseRanks, NameATableWhoseRowsAreNotTheSame) {
  const auto env = real_env();
  auto groups = comm::inproc_groups(*env, 2, std::chrono::seconds(60));
  std::array<std::string, 2> messages;
  comm::on_threads(2, [&](int rank) {
    const std::shared_ptr<comm::Group> group = std::move(groups[static_cast<size_t>(rank)]);
    TrainerOptions own = options_of("sgd");
    own.strategy.mode = "collective";
    own.strategy.collective.check_every = 5;
    Trainer trainer(*env, sparse_model, own, wires_of(group));
    const auto set = data()(trainer.plan(), rank);
    messages[static_cast<size_t>(rank)] = message_of<DataError>([&] {
      trainer.fit(*set, {.on_step =
                             [&](const Progress& progress) {
                               if (rank == 1 && progress.step == 7) disturb_rows(trainer, "rows");
                               return Next::go_on;
                             },
                         .show = nullptr});
    });
  });
  for (const std::string& message : messages)
    EXPECT_EQ(message.find("'rows' is not the same on all ranks after step 10: rank "), 0U)
        << message;
}

TEST_F(SparseRanks, HaveTheFirstLossesOfTheLargeBatch) {
  const auto env = real_env();
  for (const GraphMode graph : {GraphMode::recorded, GraphMode::eager})
    for (const auto& [rule, tolerance] : kTolerances) {
      const TrainerOptions options = options_of(rule, graph);
      Trainer trainer(*env, sparse_model, options);
      const Outcome alone = train(trainer, *large_clicks(trainer.plan(), 2));
      expect_losses(train_ranks(sparse_model, options, 2, data()), alone, tolerance);
    }
}

/// Steps of two batches of each of two ranks are steps of four of one process.
TEST_F(SparseRanks, MergeBatchesAsOneProcessThatAccumulatesThem) {
  for (const char* rule : {"sgd", "adam"}) {
    const TrainerOptions options = options_of(rule);
    const Outcome alone = train_alone(sparse_model, options, 4, [&](const Plan& plan, int turn) {
      return share_of(data()(plan, turn % 2), {static_cast<size_t>(turn / 2), 2});
    });
    const auto merged = [&](bool mean) {
      return train_ranks(sparse_model, options, 2, data(), [&](TrainerOptions& own, int) {
        own.strategy.accumulate = 2;
        own.strategy.accumulate_mean = mean;
      });
    };
    const auto together = merged(true);
    expect_same_bits(together[0], together[1]);
    EXPECT_LT(greatest_difference(alone, together[0]), 1e-4) << rule;
    EXPECT_LT(greatest_row_difference(alone, together[0]), 1e-4) << rule;
    EXPECT_GT(greatest_row_difference(alone, merged(false)[0]), 1e-4) << rule;
  }
}

/// 20 batches in steps of 3: the last step of a pass has two, and so does one process.
TEST_F(SparseRanks, MakeAStepOfMergedBatchesThatAreLeft) {
  const TrainerOptions options = options_of("sgd");
  const auto together = train_ranks(
      sparse_model, options, 2, data(),
      [](TrainerOptions& own, int) { own.strategy.accumulate = 3; }, "inproc", 1);
  expect_same_bits(together[0], together[1]);
  EXPECT_EQ(together[0].values.back().value.as<int64_t>()[0], 7);
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
    const auto set = [name = wire](TrainerOptions& own, int) {
      own.strategy.collective.wire = name;
    };
    const auto rounded = train_ranks(plain, options, 3, dense_of, set);
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
  const auto work = [](std::unique_ptr<comm::Group> owned) {
    const std::shared_ptr<comm::Group> group = std::move(owned);
    const auto env = real_env();
    TrainerOptions own = options_of("adam");
    own.strategy.mode = "collective";
    Trainer trainer(*env, dense_model, own, wires_of(group));
    const auto data = dense_data(group->rank());
    trainer.fit(*data, {.epochs = 1'000'000, .show = nullptr});
  };
  comm::kill_at_random(work);
}

}  // namespace
}  // namespace argosy

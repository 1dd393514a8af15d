// Statistics of a batch over all ranks: ranks with sync_batch_norm are one process with the large
// batch.
#include <gtest/gtest.h>

#include "argosy/graph/autograd.h"
#include "argosy/modes/ranks/group_sum.h"
#include "argosy/train/test_ranks.h"

namespace argosy {
namespace {

/// A bias in front of a norm would have a gradient of rounding errors only.
ModelOutputs normed(Builder& g) {
  const Var x = g.input("x", {{-1, 12}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  const Var a = nn::relu(nn::batch_norm(nn::linear(x, 16, "fc.0", {.bias = false}), "norm.0"));
  const Var b = nn::tanh(nn::batch_norm(nn::linear(a, 10, "fc.1", {.bias = false}), "norm.1"));
  return {.loss = nn::softmax_loss(nn::linear(b, 3, "out"), label)};
}

const Change kSync = [](TrainerOptions& options, int) {
  options.strategy.collective.sync_batch_norm = true;
};

using Ranks = std::tuple<int, GraphMode>;

struct SyncBatchNorm : testing::TestWithParam<Ranks> {};

TEST_P(SyncBatchNorm, MakesRanksOneProcessWithTheLargeBatch) {
  const auto [ranks, graph] = GetParam();
  const auto env = real_env();
  for (const auto& [rule, tolerance] : {std::pair{"sgd", 1e-5}, std::pair{"adam", 1e-4}}) {
    Trainer trainer(*env, normed, options_of(rule, graph));
    const Outcome alone = train(trainer, *large_data(ranks));
    const auto together = train_ranks(normed, options_of(rule, graph), ranks, dense_of, kSync);
    expect_losses(together, alone, tolerance);
    EXPECT_LT(greatest_difference(alone, together[0]), 10 * tolerance) << rule;
    expect_same_bits(together[0], together[1]);
    const auto apart = train_ranks(normed, options_of(rule, graph), ranks, dense_of);
    EXPECT_GT(greatest_difference(alone, apart[0]), 100 * tolerance) << rule;
  }
}

INSTANTIATE_TEST_SUITE_P(Collective, SyncBatchNorm,
                         testing::Combine(testing::Values(2, 3),
                                          testing::Values(GraphMode::recorded, GraphMode::eager)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == GraphMode::recorded ? "Recorded"
                                                                                  : "Eager");
                         });

/// The large batch shrinks to the ranks that still have data, running means included.
TEST(SyncBatchNormRanks, WithoutDataTakeNoPartInTheStatistics) {
  constexpr size_t kShort = 7;
  const auto data = [](const Plan&, int rank) {
    return dense_data(rank, rank == 0 ? kBatches : kShort);
  };
  const auto env = real_env();
  Trainer trainer(*env, normed, options_of("sgd"));
  Batch batch;
  const auto step_through = [&](Dataset& set) {
    while (set.next(batch)) trainer.step(batch);
  };
  const auto both = large_data(2, kShort);
  both->begin_epoch(0);
  step_through(*both);
  const auto rest = dense_data(0);
  rest->begin_epoch(0, {.batches = kShort, .files = {}});
  step_through(*rest);
  const Outcome alone = outcome_of(trainer);
  for (const char* backend : {"inproc", "shm", "tcp"}) {
    const auto together = train_ranks(normed, options_of("sgd"), 2, data, kSync, backend, 1);
    expect_same_bits(together[0], together[1]);
    EXPECT_LT(greatest_difference(alone, together[0]), 2e-5) << backend;
  }
}

/// The batches that make a step are met one by one, also by a rank that has fewer of them.
TEST(SyncBatchNormRanks, MergeBatchesWithAndWithoutData) {
  const auto merged = [](TrainerOptions& options, int) {
    options.strategy.collective.sync_batch_norm = true;
    options.strategy.accumulate = 3;
  };
  for (const size_t of_second : {size_t{20}, size_t{13}, size_t{1}}) {
    const auto data = [&](const Plan&, int rank) {
      return dense_data(rank, rank == 0 ? kBatches : of_second);
    };
    const auto together = train_ranks(normed, options_of("sgd"), 2, data, merged);
    expect_same_bits(together[0], together[1]);
  }
  const auto env = real_env();
  TrainerOptions options = options_of("sgd");
  options.strategy.accumulate = 2;
  Trainer trainer(*env, normed, options);
  const Outcome alone = train(trainer, *large_data(2));
  const auto together =
      train_ranks(normed, options_of("sgd"), 2, dense_of, [](TrainerOptions& own, int) {
        own.strategy.collective.sync_batch_norm = true;
        own.strategy.accumulate = 2;
      });
  EXPECT_LT(greatest_difference(alone, together[0]), 2e-5);
}

ModelOutputs clicks_normed(Builder& g) {
  const std::vector<std::string> slots = {"a", "b"};
  const Var rows = nn::embedding(g, slots, "rows", 4, {.init = "uniform(-0.3, 0.3)"});
  const Var x = nn::batch_norm(nn::concat(std::array{rows, g.input("x", {{-1, 2}})}), "norm");
  return {.loss = nn::logistic_loss(nn::linear(x, 1, "out"), g.input("label", {{-1, 1}}))};
}

/// The gradients of rows go to the others while backward still needs their sums.
TEST_F(SparseRanks, NormaliseRowsOverAllOfThem) {
  const auto env = real_env();
  Trainer trainer(*env, clicks_normed, options_of("adam"));
  const Outcome alone = train(trainer, *large_clicks(trainer.plan(), 2));
  const auto together = train_ranks(clicks_normed, options_of("adam"), 2, data(), kSync);
  expect_losses(together, alone, 1e-4);
  const auto uneven = [&](const Plan& plan, int rank) {
    return rank == 0 ? data()(plan, 0) : share_of(data()(plan, 1), {0, 3});
  };
  const auto short_of_data = train_ranks(clicks_normed, options_of("sgd"), 2, uneven, kSync);
  expect_same_bits(short_of_data[0], short_of_data[1]);
}

/// The weighted sum of what all ranks make of their x.
double weighted_sum(GroupSumOverRanks& ranks, comm::Group& group, const Tensor& x,
                    const Tensor& weights, Tensor* gradient) {
  const auto given = [](const Tensor& t) { return std::make_shared<dynamic::Value>(t); };
  const auto channels = [&](double value) {
    Tensor t({2}, DType::f64);
    for (double& each : t.as<double>()) each = value;
    return given(t);
  };
  const auto in = std::make_shared<dynamic::Value>(x.clone(), true);
  const std::array inputs{in, channels(1.5), channels(0.25), channels(0), channels(1)};
  // Shared by what is under way; the test owns it.
  const std::shared_ptr<SumOverRanks> service(std::shared_ptr<SumOverRanks>(), &ranks);
  const auto y =
      dynamic::apply(find_op("batch_norm"), inputs, {{"sync", int64_t{1}}}, {.ranks = service})[0];
  double sum = 0;
  const std::span<const double> values = y->data.as<double>(), factors = weights.as<double>();
  for (size_t i = 0; i < values.size(); ++i) sum += values[i] * factors[i];
  if (gradient != nullptr) {
    dynamic::backward(y, weights);
    *gradient = *in->grad;
  }
  std::array<double, 1> total = {sum};
  group.all_reduce(std::span<double>(total));
  return total[0];
}

TEST(SyncBatchNormRanks, HaveTheGradientsOfFiniteDifferences) {
  constexpr size_t kRows = 4, kChannels = 2;
  constexpr double kStep = 1e-5;
  comm::on_group("inproc", 3, [&](comm::Group& group) {
    GroupSumOverRanks ranks(group);
    const RandomStream random(11 + static_cast<uint64_t>(group.rank()));
    // A rank with fewer rows than the others.
    const size_t rows = group.rank() == 2 ? 1 : kRows;
    Tensor x({static_cast<int64_t>(rows), kChannels}, DType::f64), weights = x.clone();
    for (size_t i = 0; i < rows * kChannels; ++i) {
      x.as<double>()[i] = random.normal(2 * i);
      weights.as<double>()[i] = random.normal(2 * i + 1);
    }
    Tensor gradient;
    weighted_sum(ranks, group, x, weights, &gradient);
    for (int rank = 0; rank < 3; ++rank)
      for (size_t i = 0; i < (rank == 2 ? 1 : kRows) * kChannels; ++i) {
        const auto moved = [&](double by) {
          Tensor other = x.clone();
          if (rank == group.rank()) other.as<double>()[i] += by;
          return weighted_sum(ranks, group, other, weights, nullptr);
        };
        const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
        if (rank == group.rank()) {
          EXPECT_NEAR(gradient.as<double>()[i], slope, 1e-8) << rank << " " << i;
        }
      }
  });
}

TEST(SyncBatchNormRanks, AreRefusedWhereTheyCannotBe) {
  const auto env = real_env();
  TrainerOptions options = options_of("sgd");
  options.strategy.collective.sync_batch_norm = true;
  options.strategy.mode = "async";
  EXPECT_EQ(message_of<ConfigError>([&] { Trainer(*env, normed, options); }),
            "sync_batch_norm: a model with it is trained by ranks without servers, the mode is "
            "async");
  options.strategy.mode = "local";
  options.chunks = 2;
  EXPECT_EQ(message_of<ConfigError>([&] { Trainer(*env, normed, options); }),
            "sync_batch_norm: the threads of a rank share a batch in 2 chunks, expected one "
            "thread");
}

/// A single rank needs no sums.
TEST(SyncBatchNormRanks, OfOneAreThePlainOp) {
  const auto usual = train_ranks(normed, options_of("adam"), 1, dense_of);
  const auto synced = train_ranks(normed, options_of("adam"), 1, dense_of, kSync);
  expect_same_bits(usual[0], synced[0]);
}

}  // namespace
}  // namespace argosy

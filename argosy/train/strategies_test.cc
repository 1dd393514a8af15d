// Every strategy of ranks alone and combined with every other one: it trains what one process
// computes by other means, or is refused by name.
#include <gtest/gtest.h>

#include <algorithm>

#include "argosy/job/fleet.h"
#include "argosy/train/test_ranks.h"

namespace argosy {
namespace {

struct Field {
  const char* name;
  std::function<void(DistributedStrategy&)> set;
};

using S = DistributedStrategy;

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {"gradient_scale_sum", [](S& s) { s.gradient_scale = "sum"; }},
      {"gradient_merge",
       [](S& s) {
         s.gradient_merge = true;
         s.gradient_merge_configs.k_steps = 2;
       }},
      {"gradient_merge_sum",
       [](S& s) {
         s.gradient_merge = true;
         s.gradient_merge_configs = {.k_steps = 2, .avg = false};
       }},
      {"fp16_allreduce_bf16", [](S& s) { s.fp16_allreduce = true; }},
      {"fp16_allreduce_f16",
       [](S& s) {
         s.fp16_allreduce = true;
         s.fp16_allreduce_type = "f16";
       }},
      {"no_fuse_all_reduce_ops", [](S& s) { s.fuse_all_reduce_ops = false; }},
      {"fuse_grad_size_in_MB", [](S& s) { s.fuse_grad_size_in_MB = 0.0005; }},
      {"lars",
       [](S& s) {
         s.lars = true;
         s.lars_configs = {.lars_coeff = 0.1, .exclude_from_weight_decay = {".b"}};
       }},
      {"lamb",
       [](S& s) {
         s.lamb = true;
         s.lamb_configs.exclude_from_weight_decay = {".b"};
       }},
      {"deterministic", [](S& s) { s.deterministic = true; }},
      {"sync_batch_norm", [](S& s) { s.sync_batch_norm = true; }},
      {"use_hierarchical_allreduce", [](S& s) { s.use_hierarchical_allreduce = true; }}};
  return all;
}

/// The others are expected to train.
const char* reason_of_refusal(const S& s) {
  if (s.lars && s.lamb)
    return "strategy.lars and strategy.lamb do not go together: each is a rule of its own";
  if (!s.fuse_all_reduce_ops && s.fuse_grad_size_in_MB)
    return "strategy.fuse_all_reduce_ops=false and strategy.fuse_grad_size_in_MB do not go "
           "together: without buckets there is no size of them";
  if (s.use_hierarchical_allreduce && s.deterministic)
    return "strategy.use_hierarchical_allreduce and strategy.deterministic do not go together: "
           "sums inside of hosts are not in the order of ranks";
  if (s.use_hierarchical_allreduce && s.fp16_allreduce)
    return "strategy.use_hierarchical_allreduce and strategy.fp16_allreduce do not go together: "
           "half floats are added up by the rank that takes their slice";
  return nullptr;
}

/// The loss may be taken several times.
Model normed_model(int factor) {
  return [factor](Builder& g) -> ModelOutputs {
    const Var x = g.input("x", {{-1, 12}});
    const Var label = g.input("label", {{-1, 1}, DType::i64});
    const Var h = nn::tanh(nn::batch_norm(nn::linear(x, 16, "fc", {.bias = false}), "norm"));
    const Var loss = nn::softmax_loss(nn::linear(h, 3, "out"), label);
    if (factor == 1) return {.loss = loss};
    return {.loss = g.apply("scale", {loss}, {{"scale", static_cast<double>(factor)}})};
  };
}

TrainerOptions base_options(const S& strategy) {
  TrainerOptions options = options_of(strategy.lamb ? "adam" : "momentum");
  options.optimizer.learning_rate = "0.004";
  const std::vector<std::string> names = {"fc.w", "norm.scale", "norm.bias", "out.w", "out.b"};
  apply_large_batch_rules(strategy, names, options.optimizer, options.tables);
  return options;
}

/// The result of one process on all ranks' batches, without any of the code of ranks.
Outcome by_one_process(const S& strategy, int ranks) {
  const auto env = real_env();
  const auto& merge = strategy.gradient_merge_configs;
  const int k = strategy.gradient_merge ? merge.k_steps : 1;
  const int factor = (strategy.gradient_scale == "sum" ? ranks : 1) * (merge.avg ? 1 : k);
  TrainerOptions options = base_options(strategy);
  if (!strategy.sync_batch_norm)
    return train_alone(normed_model(factor), options, ranks * k, [&](const Plan&, int turn) {
      return share_of(dense_data(turn % ranks),
                      {static_cast<size_t>(turn / ranks), static_cast<size_t>(k)});
    });
  options.strategy.accumulate = k;
  Trainer trainer(*env, normed_model(factor), options);
  return train(trainer, *large_data(ranks));
}

std::vector<Outcome> by_ranks(const S& strategy, int ranks) {
  return train_ranks(
      normed_model(1), base_options(strategy), ranks, dense_of,
      [&](TrainerOptions& own, int) { own.strategy = collective_strategy_of(strategy); },
      strategy.use_hierarchical_allreduce ? "hierarchical" : "inproc");
}

/// Greatest difference of parameters, each relative to its greatest value.
double parameter_difference(const Outcome& a, const Outcome& b) {
  double worst = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const std::string& name = a.values[i].name;
    if (!name.ends_with(".w") && !name.ends_with(".b") && !name.ends_with(".scale")) continue;
    const auto x = a.values[i].value.as<float>(), y = b.values[i].value.as<float>();
    float greatest = 0;
    for (const float value : x) greatest = std::max(greatest, std::abs(value));
    for (size_t j = 0; j < x.size(); ++j)
      worst = std::max(worst, static_cast<double>(std::abs(x[j] - y[j]) / greatest));
  }
  return worst;
}

using Pair = std::pair<size_t, size_t>;  // of fields; the same twice: only that one

std::vector<Pair> pairs() {
  std::vector<Pair> all;
  for (size_t a = 0; a < fields().size(); ++a)
    for (size_t b = a; b < fields().size(); ++b) all.emplace_back(a, b);
  return all;
}

class Strategies : public testing::TestWithParam<Pair> {};

TEST_P(Strategies, TrainTogetherOrAreRefused) {
  S strategy;
  fields()[GetParam().first].set(strategy);
  fields()[GetParam().second].set(strategy);
  if (const char* reason = reason_of_refusal(strategy)) {
    EXPECT_EQ(message_of<ConfigError>([&] { collective_strategy_of(strategy); }), reason);
    return;
  }
  const int ranks = strategy.use_hierarchical_allreduce ? 4 : 2;
  const Outcome alone = by_one_process(strategy, ranks);
  const auto together = by_ranks(strategy, ranks);
  for (const Outcome& rank : together) expect_same_bits(together[0], rank);
  const bool exact = !strategy.fp16_allreduce;
  const double tolerance = exact ? 1e-4 : strategy.fp16_allreduce_type == "bf16" ? 0.1 : 0.02;
  EXPECT_LT(parameter_difference(alone, together[0]), tolerance);
  const bool changes = strategy.gradient_scale == "sum" || strategy.gradient_merge ||
                       strategy.lars || strategy.lamb || strategy.sync_batch_norm;
  if (changes && exact) {
    EXPECT_GT(parameter_difference(by_one_process({}, ranks), together[0]), 10 * tolerance);
  }
}

std::string name_of(const testing::TestParamInfo<Pair>& info) {
  const auto [a, b] = info.param;
  const std::string first = fields()[a].name;
  return a == b ? first : first + "_with_" + fields()[b].name;
}

INSTANTIATE_TEST_SUITE_P(Pairs, Strategies, testing::ValuesIn(pairs()), name_of);

// lars and lamb against their formulas in double, on a model whose gradients are two lines.

constexpr size_t kWidth = 12;
using Doubles = std::vector<double>;

ModelOutputs regression(Builder& g) {
  const Var x = g.input("x", {{-1, kWidth}});
  const Var y = nn::linear(x, 1, "fc", {.weight_init = "uniform(-0.5, 0.5)"});
  return {.loss = nn::mean(nn::square_error(y, g.input("y", {{-1, 1}})))};
}

Feeds points_of(int rank) {
  constexpr size_t kRows = kBatch * kBatches;
  const RandomStream random(51 + static_cast<uint64_t>(rank));
  Tensor x({kRows, kWidth}), y({kRows, 1});
  for (size_t i = 0; i < x.as<float>().size(); ++i)
    x.as<float>()[i] = static_cast<float>(random.normal(i));
  for (size_t i = 0; i < kRows; ++i)
    y.as<float>()[i] = x.as<float>()[i * kWidth] - 2 * x.as<float>()[i * kWidth + 3] + 0.5F;
  return {{"x", x}, {"y", y}};
}

std::unique_ptr<Dataset> points(const Plan&, int rank) {
  return array_dataset(points_of(rank), {.batch_size = kBatch, .shuffle = false});
}

double length(const Doubles& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

/// A parameter and the state of its rule.
struct Weights {
  Doubles w, m = Doubles(w.size()), v = Doubles(w.size());
  double decay;
};

struct Reference {
  const S& strategy;
  static constexpr double kRate = 0.01F;

  void lars(Weights& p, const Doubles& g) const {
    const double coeff = strategy.lars_configs.lars_coeff, epsilon = strategy.lars_configs.epsilon;
    const double rate =
        p.decay == 0 || length(p.w) == 0
            ? kRate
            : kRate * coeff * length(p.w) / (length(g) + p.decay * length(p.w) + epsilon);
    for (size_t i = 0; i < g.size(); ++i) {
      p.v[i] = 0.9 * p.v[i] + rate * (g[i] + p.decay * p.w[i]);
      p.w[i] -= p.v[i];
    }
  }
  static void lamb(Weights& p, const Doubles& g, int step) {
    Doubles r(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      p.m[i] = 0.9 * p.m[i] + 0.1 * g[i];
      p.v[i] = 0.999 * p.v[i] + 0.001 * g[i] * g[i];
      const double m = p.m[i] / (1 - std::pow(0.9, step)), v = p.v[i] / (1 - std::pow(0.999, step));
      r[i] = m / (std::sqrt(v) + 1e-8) + p.decay * p.w[i];
    }
    const double trust = p.decay == 0 || length(p.w) == 0 ? 1 : length(p.w) / length(r);
    for (size_t i = 0; i < g.size(); ++i) p.w[i] -= kRate * trust * r[i];
  }

  /// Weights and bias after all steps of `ranks` ranks that merge k batches.
  std::pair<Doubles, double> train(Doubles first, size_t ranks, size_t k) const {
    const double decay = strategy.lars ? strategy.lars_configs.lars_weight_decay
                                       : strategy.lamb_configs.lamb_weight_decay;
    Weights w{.w = std::move(first), .decay = decay}, b{.w = {0}, .decay = 0};
    std::vector<Feeds> data;
    for (size_t rank = 0; rank < ranks; ++rank) data.push_back(points_of(static_cast<int>(rank)));
    const double share = 2 / static_cast<double>(ranks * k * kBatch);
    for (size_t step = 0; step < kBatches / k; ++step) {
      Doubles dw(kWidth), db(1);
      for (const Feeds& part : data)
        for (size_t row = step * k * kBatch; row < (step + 1) * k * kBatch; ++row) {
          const float* x = part.at("x").as<float>().data() + row * kWidth;
          double error = b.w[0] - static_cast<double>(part.at("y").as<float>()[row]);
          for (size_t i = 0; i < kWidth; ++i) error += static_cast<double>(x[i]) * w.w[i];
          for (size_t i = 0; i < kWidth; ++i) dw[i] += share * error * static_cast<double>(x[i]);
          db[0] += share * error;
        }
      for (auto [p, g] : {std::pair{&w, &dw}, std::pair{&b, &db}})
        strategy.lars ? lars(*p, *g) : lamb(*p, *g, static_cast<int>(step) + 1);
    }
    return {w.w, b.w[0]};
  }
};

TEST(LargeBatchRules, FollowTheirFormulasAloneAndTogetherAndMerged) {
  const auto env = real_env();
  for (const bool lars : {true, false})
    for (const size_t ranks : {size_t{1}, size_t{3}})
      for (const int k : {1, 2}) {
        S strategy;
        strategy.lars = lars;
        strategy.lamb = !lars;
        strategy.lars_configs = {.lars_coeff = 0.3,
                                 .lars_weight_decay = 0.02,
                                 .epsilon = 0.01,
                                 .exclude_from_weight_decay = {".b"}};
        strategy.lamb_configs = {.lamb_weight_decay = 0.05, .exclude_from_weight_decay = {".b"}};
        strategy.gradient_merge = k > 1;
        strategy.gradient_merge_configs.k_steps = k;
        TrainerOptions options = options_of(lars ? "momentum" : "adam");
        options.optimizer.learning_rate = "0.01";
        apply_large_batch_rules(strategy, std::vector<std::string>{"fc.w", "fc.b"},
                                options.optimizer, options.tables);
        Trainer untrained(*env, regression, options);
        const auto first = untrained.communicator().store().persistables();
        const auto of = [](const std::vector<NamedTensor>& all, const char* name) {
          return std::ranges::find(all, name, &NamedTensor::name)->value.as<float>();
        };
        const auto start = of(first, "fc.w");
        const auto [w, b] =
            Reference{strategy}.train({start.begin(), start.end()}, ranks, static_cast<size_t>(k));
        const auto together = train_ranks(
            regression, options, static_cast<int>(ranks), points,
            [&](TrainerOptions& own, int) { own.strategy = collective_strategy_of(strategy); },
            "inproc", 1);
        const auto got = of(together[0].values, "fc.w");
        for (size_t i = 0; i < kWidth; ++i)
          EXPECT_NEAR(got[i], w[i], 1e-5) << (lars ? "lars" : "lamb") << ranks << k;
        EXPECT_NEAR(of(together[0].values, "fc.b")[0], b, 1e-5);
        double moved = 0;
        for (size_t i = 0; i < kWidth; ++i)
          moved = std::max(moved, std::abs(w[i] - static_cast<double>(start[i])));
        EXPECT_GT(moved, 1e-2);
      }
}

}  // namespace
}  // namespace argosy

// Two ranks, which are processes, learn to read digits with each strategy as well as one process
// that makes the same steps. ARGOSY_STRATEGY_EPOCHS: how long (2); make soak takes 10.
#include <gtest/gtest.h>

#include <fstream>
#include <iomanip>

#include "argosy/base/test_support.h"
#include "argosy/comm/test_rank_process.h"
#include "argosy/job/fleet.h"
#include "argosy/nn/layers.h"
#include "argosy/samples/samples.h"

namespace argosy {
namespace {

constexpr int kRanks = 2;
constexpr size_t kBatch = 64;  // of a rank
constexpr double kPoints = 0.003;

int epochs() {
  const char* told = std::getenv("ARGOSY_STRATEGY_EPOCHS");
  return told == nullptr ? 2 : std::stoi(told);
}

Model digits(bool normed) {
  return [normed](Builder& g) -> ModelOutputs {
    const Var x = g.input("x", {{-1, 784}});
    const Var label = g.input("label", {{-1, 1}, DType::i64});
    Var hidden = nn::linear(x, 128, "fc.0", {.bias = !normed});
    if (normed) hidden = nn::batch_norm(hidden, "norm");
    hidden = nn::linear(nn::tanh(hidden), 64, "fc.1", {.activation = "tanh"});
    const Var logits = nn::linear(hidden, 10, "out");
    return {.loss = nn::softmax_loss(logits, label),
            .metrics = {{"acc", nn::accuracy(logits, label)}}};
  };
}

struct Case {
  const char* name;
  std::function<void(DistributedStrategy&)> set;
  const char *rule = "adam", *rate = "0.001";
};

std::vector<Case> cases() {
  using S = DistributedStrategy;
  return {{"plain", [](S&) {}},
          {"gradient_merge",
           [](S& s) {
             s.gradient_merge = true;
             s.gradient_merge_configs.k_steps = 2;
           }},
          {"gradient_scale_sum", [](S& s) { s.gradient_scale = "sum"; }, "momentum", "0.025"},
          {"fp16_allreduce_bf16", [](S& s) { s.fp16_allreduce = true; }},
          {"fp16_allreduce_f16",
           [](S& s) {
             s.fp16_allreduce = true;
             s.fp16_allreduce_type = "f16";
           }},
          {"no_fuse_all_reduce_ops", [](S& s) { s.fuse_all_reduce_ops = false; }},
          {"fuse_grad_size_in_MB", [](S& s) { s.fuse_grad_size_in_MB = 0.1; }},
          {"lars",
           [](S& s) {
             s.lars = true;
             s.lars_configs.lars_coeff = 0.02;
             s.lars_configs.exclude_from_weight_decay = {".b"};
           },
           "momentum", "0.1"},
          {"lamb",
           [](S& s) {
             s.lamb = true;
             s.lamb_configs.exclude_from_weight_decay = {".b"};
           },
           "adam", "0.005"},
          {"deterministic", [](S& s) { s.deterministic = true; }},
          {"sync_batch_norm", [](S& s) { s.sync_batch_norm = true; }},
          {"use_hierarchical_allreduce", [](S& s) { s.use_hierarchical_allreduce = true; }}};
}

class Accuracy : public testing::TestWithParam<Case> {
 protected:
  static const Samples& samples() {
    static const Samples all = mnist_samples(*real_env(), data_folder("mnist"));
    return all;
  }
  DistributedStrategy strategy() const {
    DistributedStrategy result;
    GetParam().set(result);
    return result;
  }
  Model model() const { return digits(strategy().sync_batch_norm); }
  TrainerOptions options() const {
    TrainerOptions result;
    result.optimizer = {.rule = GetParam().rule, .learning_rate = GetParam().rate};
    std::vector<std::string> names;
    for (const ps::ParameterSpec& spec : record(model(), result).plan.parameters)
      names.push_back(spec.name);
    apply_large_batch_rules(strategy(), names, result.optimizer, result.tables);
    return result;
  }
  struct Reached {
    double loss = 0, accuracy = 0;  // on the test set
  };
  Reached trained(const TrainerOptions& options, size_t batch, const Share& share,
                  const Wires& wires = {}) const {
    const auto env = real_env();
    Trainer trainer(*env, model(), options, wires);
    const auto train =
        array_dataset(samples().train, {.batch_size = batch, .drop_last = true, .share = share});
    const auto test = array_dataset(samples().test, {.batch_size = 500, .shuffle = false});
    trainer.fit(*train, {.epochs = epochs(), .show = nullptr});
    const std::vector<Metric> metrics = trainer.evaluate(*test);
    trainer.leave();
    return {metrics[0].value, metrics[1].value};
  }

  Reached alone() const {
    TrainerOptions own = options();
    if (strategy().gradient_merge)
      own.strategy.accumulate = strategy().gradient_merge_configs.k_steps;
    if (strategy().gradient_scale == "sum")
      own.optimizer.learning_rate = std::to_string(kRanks * std::stod(GetParam().rate));
    return trained(own, kRanks * kBatch, {});
  }

  /// The result of each rank.
  std::vector<Reached> together() const {
    const TestFolder folder;
    comm::TestRanks test(kRanks);
    const auto file = [&](int rank) { return folder.path() + "/" + std::to_string(rank); };
    const auto work = [&](std::unique_ptr<comm::Group> owned) {
      const std::shared_ptr<comm::Group> group = std::move(owned);
      TrainerOptions own = options();
      own.strategy = collective_strategy_of(strategy());
      const auto rank = static_cast<size_t>(group->rank());
      const Reached reached = trained(own, kBatch, {rank, kRanks}, wires_of(group));
      std::ofstream(file(group->rank()))
          << std::setprecision(12) << reached.loss << ' ' << reached.accuracy;
    };
    const char* backend = strategy().use_hierarchical_allreduce ? "hierarchical" : "auto";
    {
      std::vector<std::unique_ptr<comm::RankProcess>> ranks;
      for (int rank = 0; rank < kRanks; ++rank)
        ranks.push_back(std::make_unique<comm::RankProcess>(test, rank, backend, work));
      for (Descriptor& socket : test.sockets) socket.reset();
      for (const auto& rank : ranks) {
        EXPECT_TRUE(rank->is_connected());
        EXPECT_EQ(rank->last_words(std::chrono::minutes(4)), "");
      }
    }
    std::vector<Reached> reached(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      Reached& own = reached[static_cast<size_t>(rank)];
      std::ifstream(file(rank)) >> own.loss >> own.accuracy;
    }
    return reached;
  }
};

TEST_P(Accuracy, IsThatOfOneProcess) {
  if (std::getenv("ARGOSY_DATA") == nullptr) GTEST_SKIP() << "needs MNIST: set ARGOSY_DATA";
  const Reached one = alone();
  const std::vector<Reached> ranks = together();
  std::printf("%s: one process %.4f (loss %.8f), two ranks %.4f (loss %.8f)\n", GetParam().name,
              one.accuracy, one.loss, ranks[0].accuracy, ranks[0].loss);
  EXPECT_GT(one.accuracy, 0.93);
  for (const Reached& rank : ranks) {
    EXPECT_EQ(rank.loss, ranks[0].loss);
    EXPECT_EQ(rank.accuracy, ranks[0].accuracy);
    EXPECT_NEAR(rank.accuracy, one.accuracy, kPoints);
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Accuracy, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace argosy

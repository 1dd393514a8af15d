// Ranks that train an MLP 784-H-H-10 (or CTR-DNN) together, as real processes with one thread each,
// and one process alone, in turns. With --latency: how much longer a step takes if every call
// between ranks is late by so much (microseconds), with sums during backward and after it.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "argosy/argosy.h"
#include "argosy/comm/backends.h"
#include "argosy/comm/group.h"
#include "bench/bench.h"
#include "bench/ctr_work.h"
#include "bench/mlp_work.h"
#include "bench/processes.h"

namespace argosy::benches {
namespace {

/// As if the ranks were far from each other.
class Late final : public comm::Backend {
 public:
  Late(std::unique_ptr<comm::Backend> backend, std::chrono::microseconds by)
      : backend_(std::move(backend)), by_(by) {}
  int rank() const override { return backend_->rank(); }
  int size() const override { return backend_->size(); }
  void run(const comm::Collective& work) override {
    if (by_.count() > 0) std::this_thread::sleep_for(by_);
    backend_->run(work);
  }
  std::span<std::byte> arena(const comm::GroupCall& call) override { return backend_->arena(call); }
  std::unique_ptr<comm::Backend> sub_group(std::span<const int> ranks, uint64_t id) override {
    return backend_->sub_group(ranks, id);
  }
  void abandon(const std::string& reason) noexcept override { backend_->abandon(reason); }

 private:
  std::unique_ptr<comm::Backend> backend_;
  std::chrono::microseconds by_;
};

struct Setting {
  std::string model, rule;
  int64_t hidden = 0, batch = 0, steps = 0, latency = 0;
  Overlap overlap = Overlap::automatic;
  bool pinned = false;
  EmbeddingMode embedding = EmbeddingMode::replicated;
};

/// A model, alone or as one rank of a group.
class Training {
 public:
  Training(const Setting& setting, const std::shared_ptr<comm::Group>& group)
      : is_mlp_(setting.model == "mlp"),
        trainer_(*env_, is_mlp_ ? mlp_model(setting.hidden) : Model(ctr_dnn),
                 options_of(setting, group), wires_of(group)) {
    if (is_mlp_)
      batches_ = random_batches(setting.batch);
    else
      rows_.emplace(trainer_.plan().layout, static_cast<size_t>(setting.batch), 64);
    run(20);  // to warm up
  }

  /// Seconds of a step.
  double run(int64_t steps) {
    const double start = seconds_now();
    if (is_mlp_) {
      for (int64_t i = 0; i < steps; ++i)
        trainer_.step(batches_[static_cast<size_t>(i % kMlpBatches)]);
    } else {
      rows_->set_steps(static_cast<uint64_t>(steps));
      trainer_.fit(*rows_, {.show = nullptr});
    }
    return (seconds_now() - start) / static_cast<double>(steps);
  }
  void leave() { trainer_.leave(); }

 private:
  static TrainerOptions options_of(const Setting& setting,
                                   const std::shared_ptr<comm::Group>& group) {
    TrainerOptions options;
    options.optimizer = {.rule = setting.rule, .learning_rate = "0.01"};
    if (group == nullptr) return options;
    options.strategy.mode = "collective";
    options.strategy.collective.overlap = setting.overlap;
    options.strategy.collective.embedding = setting.embedding;
    return options;
  }

  const std::unique_ptr<Env> env_ = real_env();
  const bool is_mlp_;
  Trainer trainer_;
  std::vector<Batch> batches_;
  std::optional<Replay> rows_;
};

/// Steps per second.
double rate(const Setting& setting, const std::shared_ptr<comm::Group>& group) {
  Training training(setting, group);
  const double result = 1 / training.run(setting.steps);
  training.leave();
  return result;
}

/// Gives each rank a separate core if there are enough.
void pin(int rank) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(rank % cores), &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

double alone(const Setting& setting) {
  BenchProcess<double> process([&] {
    if (setting.pinned) pin(0);
    return rate(setting, nullptr);
  });
  return process.wait();
}

double run_rank(const Setting& setting, const comm::GroupOptions& options) {
  if (setting.pinned) pin(options.rank);
  const auto env = real_env();
  return rate(setting, std::make_shared<comm::Group>(comm::connect_backend(*env, options)));
}

/// Runs each rank in a child process and returns their results.
template <class Result>
std::vector<Result> of_ranks(int64_t ranks,
                             const std::function<Result(const comm::GroupOptions&)>& run_rank) {
  comm::GroupOptions options{.ranks = std::vector<Endpoint>(static_cast<size_t>(ranks))};
  std::vector<int> sockets;
  for (Endpoint& at : options.ranks) sockets.push_back(listening_socket(at));
  std::vector<BenchProcess<Result>> processes;
  for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
    options.rank = rank;
    options.listen_fd = sockets[static_cast<size_t>(rank)];
    processes.emplace_back([&] { return run_rank(options); });
  }
  for (const int socket : sockets) ::close(socket);
  std::vector<Result> results;
  for (BenchProcess<Result>& process : processes) results.push_back(process.wait());
  return results;
}

/// Steps per second of the slowest rank.
double together(const Setting& setting, int64_t ranks) {
  return std::ranges::min(of_ranks<double>(
      ranks, [&](const comm::GroupOptions& options) { return run_rank(setting, options); }));
}

/// How much longer a step takes with late calls, in seconds.
struct Added {
  double with_overlap, without;
};

/// Some steps of each way in turns, so that what else the machine does is in all of them.
Added added_by_latency(const Setting& setting, const comm::GroupOptions& options) {
  constexpr int64_t kSteps = 10;
  if (setting.pinned) pin(options.rank);
  const auto env = real_env();
  const std::unique_ptr<comm::Backend> backend = comm::connect_backend(*env, options);
  std::vector<int> all(options.ranks.size());
  std::iota(all.begin(), all.end(), 0);
  std::deque<Training> ways;
  for (const auto& [overlap, latency] : {std::pair(Overlap::always, int64_t{0}),
                                         {Overlap::always, setting.latency},
                                         {Overlap::never, setting.latency}}) {
    Setting way = setting;
    way.overlap = overlap;
    auto part = std::make_unique<Late>(backend->sub_group(all, ways.size() + 1),
                                       std::chrono::microseconds(latency));
    ways.emplace_back(way, std::make_shared<comm::Group>(std::move(part)));
  }
  std::vector<double> with, without;
  for (int64_t steps = 0; steps < setting.steps; steps += kSteps) {
    const double plain = ways[0].run(kSteps);
    with.push_back(ways[1].run(kSteps) - plain);
    without.push_back(ways[2].run(kSteps) - plain);
  }
  for (Training& way : ways) way.leave();
  return {median(with), median(without)};
}

void measure_overlap(const Setting& setting, int64_t ranks, int64_t turns, BenchResults& results) {
  std::vector<double> with, without, shares;
  for (int64_t turn = 0; turn < turns; ++turn) {
    const Added added = of_ranks<Added>(ranks, [&](const comm::GroupOptions& options) {
                          return added_by_latency(setting, options);
                        }).front();
    with.push_back(added.with_overlap);
    without.push_back(added.without);
    shares.push_back(added.with_overlap / added.without);
  }
  results.emplace_back("added_ms", median(with) * 1e3);
  results.emplace_back("added_without_overlap_ms", median(without) * 1e3);
  results.emplace_back("added_ratio", median(shares));
}

Overlap overlap_of(const std::string& text) {
  if (text == "auto") return Overlap::automatic;
  check<ConfigError>(text == "on" || text == "off", "--overlap ", text,
                     ": expected auto, on or off");
  return text == "on" ? Overlap::always : Overlap::never;
}

BenchResults run(const BenchFlags& flags) {
  const int64_t ranks = integer(flags, "ranks"), turns = integer(flags, "turns");
  const Setting setting{.model = flags.at("model"),
                        .rule = flags.at("optimizer"),
                        .hidden = integer(flags, "hidden"),
                        .batch = integer(flags, "batch"),
                        .steps = integer(flags, "steps"),
                        .latency = integer(flags, "latency", 0),
                        .overlap = overlap_of(flags.at("overlap")),
                        .pinned = integer(flags, "pin", 0) != 0,
                        .embedding = parse_embedding_mode(flags.at("embedding"), "--embedding")};
  check<ConfigError>(setting.model == "mlp" || setting.model == "ctr", "--model ", setting.model,
                     ": expected mlp or ctr");
  BenchResults results;
  if (setting.latency > 0) {
    measure_overlap(setting, ranks, turns, results);
    return results;
  }
  std::vector<double> rates, single, ratios;
  const auto batch = static_cast<double>(setting.batch);
  for (int64_t turn = 0; turn < turns; ++turn) {
    single.push_back(alone(setting) * batch);
    rates.push_back(together(setting, ranks) * batch * static_cast<double>(ranks));
    ratios.push_back(rates.back() / single.back());
  }
  return {{"samples_per_second", median(rates)},
          {"one_process_samples_per_second", median(single)},
          {"ratio_to_one_process", median(ratios)},
          {"turns", static_cast<double>(turns)}};
}

}  // namespace

Bench collective() {
  return {.help = "ranks that train together, beside one process by itself",
          .flags = {{"ranks", "2"},
                    {"model", "mlp"},
                    {"hidden", "512"},
                    {"batch", "64"},
                    {"optimizer", "sgd"},
                    {"steps", "400"},
                    {"turns", "5"},
                    {"latency", "0"},
                    {"embedding", "replicated"},
                    {"overlap", "auto"},
                    {"pin", "0"}},
          .run = run};
}

}  // namespace argosy::benches

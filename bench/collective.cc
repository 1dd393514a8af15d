// Ranks that train an MLP 784-H-H-10 (or CTR-DNN) together, as real processes with one thread each,
// beside one process by itself, in turns. With --latency every call between ranks takes so much
// longer (microseconds), and sums that wait for the end of backward are measured too.
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
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
class Late final : public Backend {
 public:
  Late(std::unique_ptr<Backend> backend, std::chrono::microseconds by)
      : backend_(std::move(backend)), by_(by) {}
  int rank() const override { return backend_->rank(); }
  int size() const override { return backend_->size(); }
  void run(const Collective& work) override {
    std::this_thread::sleep_for(by_);
    backend_->run(work);
  }
  std::span<std::byte> arena(const GroupCall& call) override { return backend_->arena(call); }
  std::unique_ptr<Backend> sub_group(std::span<const int> ranks, uint64_t id) override {
    return backend_->sub_group(ranks, id);
  }
  void abandon(const std::string& reason) noexcept override { backend_->abandon(reason); }

 private:
  std::unique_ptr<Backend> backend_;
  std::chrono::microseconds by_;
};

struct Setting {
  std::string model, rule;
  int64_t hidden = 0, batch = 0, steps = 0, latency = 0;
  Overlap overlap = Overlap::automatic;
  bool pinned = false;
  EmbeddingMode embedding = EmbeddingMode::replicated;
};

/// Steps per second after some that warm up.
double rate(const Setting& setting, const std::function<void(int64_t)>& run) {
  run(20);
  const double start = seconds_now();
  run(setting.steps);
  return static_cast<double>(setting.steps) / (seconds_now() - start);
}

double train(const Setting& setting, const std::shared_ptr<Group>& group) {
  const auto env = real_env();
  TrainerOptions options;
  options.optimizer = {.rule = setting.rule, .learning_rate = "0.01"};
  if (group != nullptr) {
    options.strategy.mode = "collective";
    options.strategy.collective.overlap = setting.overlap;
    options.strategy.collective.embedding = setting.embedding;
    options.connect = [&](const Plan&) { return Wires{.servers = {}, .group = group}; };
  }
  if (setting.model == "mlp") {
    Trainer trainer(*env, mlp_model(setting.hidden), options);
    std::vector<Batch> batches = random_batches(setting.batch);
    const double result = rate(setting, [&](int64_t steps) {
      for (int64_t i = 0; i < steps; ++i)
        trainer.step(batches[static_cast<size_t>(i % kMlpBatches)]);
    });
    trainer.leave();
    return result;
  }
  Trainer trainer(*env, ctr_dnn, options);
  Replay data(trainer.plan().layout, static_cast<size_t>(setting.batch), 64);
  const double result = rate(setting, [&](int64_t steps) {
    data.set_steps(static_cast<uint64_t>(steps));
    trainer.fit(data, {.show = nullptr});
  });
  trainer.leave();
  return result;
}

/// Each rank has a core of its own where there are enough.
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
    return train(setting, nullptr);
  });
  return process.wait();
}

double run_rank(const Setting& setting, const GroupOptions& options) {
  if (setting.pinned) pin(options.rank);
  const auto env = real_env();
  std::unique_ptr<Backend> backend = connect_backend(*env, options);
  if (setting.latency > 0)
    backend =
        std::make_unique<Late>(std::move(backend), std::chrono::microseconds(setting.latency));
  return train(setting, std::make_shared<Group>(std::move(backend)));
}

/// Steps per second of the slowest rank.
double together(const Setting& setting, int64_t ranks) {
  GroupOptions options{.ranks = std::vector<Endpoint>(static_cast<size_t>(ranks))};
  std::vector<int> sockets;
  for (Endpoint& at : options.ranks) sockets.push_back(listening_socket(at));
  std::vector<BenchProcess<double>> processes;
  for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
    options.rank = rank;
    options.listen_fd = sockets[static_cast<size_t>(rank)];
    processes.emplace_back([&] { return run_rank(setting, options); });
  }
  for (const int socket : sockets) ::close(socket);
  double slowest = processes.front().wait();
  for (size_t i = 1; i < processes.size(); ++i) slowest = std::min(slowest, processes[i].wait());
  return slowest;
}

/// How much longer a step takes with late calls, where sums overlap with backward and where not.
void measure_overlap(Setting setting, int64_t ranks, int64_t turns, BenchResults& results) {
  std::vector<double> with, without, shares;
  for (int64_t turn = 0; turn < turns; ++turn) {
    Setting now = setting;
    now.overlap = Overlap::always;
    now.latency = 0;
    const double plain = 1 / together(now, ranks);
    now.latency = setting.latency;
    with.push_back(1 / together(now, ranks) - plain);
    now.overlap = Overlap::never;
    without.push_back(1 / together(now, ranks) - plain);
    shares.push_back(with.back() / without.back());
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

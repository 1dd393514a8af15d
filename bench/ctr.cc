// CTR-DNN of the seeds' size, whole training steps with data in memory or from files, beside the
// limit of its matrix products (bench mlp), interleaved in this process.
#include <sched.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>

#include "argosy/argosy.h"
#include "argosy/base/rng.h"
#include "argosy/data/batcher.h"
#include "argosy/data/file_dataset.h"
#include "argosy/data/file_list.h"
#include "bench/bench.h"
#include "bench/gemm_limit.h"

namespace argosy::benches {
namespace {

constexpr int kSlots = 26, kDense = 13, kDim = 9;
constexpr uint64_t kVocabulary = 1'000'001;

std::vector<std::string> slot_names() {
  std::vector<std::string> names;
  for (int i = 1; i <= kSlots; ++i) names.push_back("C" + std::to_string(i));
  return names;
}

ModelOutputs ctr_dnn(Builder& g) {
  const Var rows = nn::embedding(g, slot_names(), "embedding", kDim);
  const Var dense = g.input("dense_input", {{-1, kDense}});
  const Var label = g.input("label", {{-1, 1}});
  const Var hidden = nn::mlp(nn::concat(std::array{rows, dense}),
                             std::array<int64_t, 4>{512, 256, 128, 32}, "relu", "fc");
  const Var logit = nn::linear(hidden, 1, "out");
  return {.loss = nn::logistic_loss(logit, label)};
}

std::vector<SlotSpec> slots() {
  std::vector<SlotSpec> all;
  for (const std::string& name : slot_names()) all.push_back({name, SlotKind::ids, 1});
  all.push_back({"dense_input", SlotKind::floats, kDense});
  all.push_back({"label", SlotKind::floats, 1});
  return all;
}

/// Instances with ids of a power law, in the shape that bench parse writes.
void add_instance(const RandomStream& random, uint64_t row, Columns& out) {
  const uint64_t first = row * 64;
  for (uint64_t slot = 0; slot < kSlots; ++slot) {
    const double rank = std::pow(1 - random.uniform(first + slot), -1 / 0.2);  // zipf, 1.2
    const uint64_t id = rank < 1e15 ? static_cast<uint64_t>(rank) : 1;
    *out.add_ids(slot, 1) = (id * 31 + slot * 7919) % kVocabulary;
  }
  float* const dense = out.add_floats(kSlots, kDense);
  for (uint64_t i = 0; i < kDense; ++i)
    dense[i] = static_cast<float>(random.uniform(first + kSlots + i));
  *out.add_floats(kSlots + 1, 1) = random.uniform(first + 63) < 0.25 ? 1.0F : 0.0F;
  out.commit();
}

/// Batches made once and given again and again: the cost of reading is not in the figure.
class Replay final : public Dataset {
 public:
  Replay(const BatchLayout& layout, size_t batch, size_t batches) : batches_(batches) {
    Batcher batcher(layout, slots());
    Columns columns(slots());
    const RandomStream random(7);
    for (size_t i = 0; i < batches; ++i) {
      columns.clear();
      for (size_t row = 0; row < batch; ++row) add_instance(random, i * batch + row, columns);
      batcher.fill(columns, batches_[i]);
    }
  }
  void begin_epoch(uint64_t, const DataPosition&) override { left_ = steps_; }
  void set_steps(uint64_t steps) { steps_ = steps; }
  bool next(Batch& out) override {
    const Lock lock(mutex_);
    if (left_ == 0) return false;
    --left_;
    const Batch& batch = batches_[at_++ % batches_.size()];
    out.size = batch.size;
    out.keys = batch.keys;
    for (const auto& [name, feed] : batch.feeds) out.feeds[name] = feed;
    return true;
  }
  DataPosition position() const override { return {}; }

 private:
  std::vector<Batch> batches_;
  Mutex mutex_;
  uint64_t steps_ = 1, left_ = 0;
  size_t at_ = 0;
};

/// Binds this process, and the threads it starts from now on, to so many cores.
class Pinned {
 public:
  explicit Pinned(int cores) {
    sched_getaffinity(0, sizeof(before_), &before_);
    if (cores <= 0) return;
    cpu_set_t some;
    CPU_ZERO(&some);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&some) < cores; ++cpu)
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &some);
    sched_setaffinity(0, sizeof(some), &some);
  }
  ~Pinned() { sched_setaffinity(0, sizeof(before_), &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
};

BenchResults run(const BenchFlags& flags) {
  const auto batch = static_cast<size_t>(integer(flags, "batch"));
  const int64_t rounds = integer(flags, "rounds"), steps = integer(flags, "steps");
  const auto env = real_env();
  TrainerOptions options;
  options.optimizer = {.rule = flags.at("optimizer"), .learning_rate = "0.001"};
  options.strategy.threads = static_cast<int>(integer(flags, "threads"));
  options.chunks = static_cast<int>(integer(flags, "chunks", 0));
  const Pinned pinned(static_cast<int>(integer(flags, "cores", 0)));
  Trainer trainer(*env, ctr_dnn, options);

  constexpr size_t kBatches = 64;
  Replay memory(trainer.plan().layout, batch, kBatches);
  std::optional<QueueDataset> files;
  if (!flags.at("files").empty())
    files.emplace(trainer.plan().layout,
                  FileOptions{.files = list_files(std::vector{flags.at("files")}),
                              .slots = slots(),
                              .batch_size = batch,
                              .threads = static_cast<size_t>(integer(flags, "readers"))});
  const auto rate = [&](Dataset& data) {
    const Progress progress = trainer.fit(data, {.show = nullptr});
    return progress.samples_per_second();
  };
  memory.set_steps(kBatches);
  rate(memory);  // makes the rows
  memory.set_steps(static_cast<uint64_t>(steps));

  GemmLimit limit(static_cast<int64_t>(batch));
  std::vector<double> ours, limits, ratios, from_files, file_ratios;
  for (int64_t round = 0; round < rounds; ++round) {
    const double before = limit.examples_per_second();
    ours.push_back(rate(memory));
    const double mean_limit = (before + limit.examples_per_second()) / 2;
    limits.push_back(mean_limit);
    ratios.push_back(ours.back() / mean_limit);
    if (!files) continue;
    from_files.push_back(rate(*files));
    file_ratios.push_back(from_files.back() / ((ours.back() + rate(memory)) / 2));
  }
  BenchResults results = {{"examples_per_second", median(ours)},
                          {"gemm_examples_per_second", median(limits)},
                          {"ratio_to_gemm", median(ratios)}};
  if (files) {
    results.emplace_back("files_examples_per_second", median(from_files));
    results.emplace_back("ratio_files_to_memory", median(file_ratios));
  }
  results.emplace_back("rounds", static_cast<double>(rounds));
  return results;
}

}  // namespace

Bench ctr() {
  return {.help = "CTR-DNN (26 x 9 + 13 -> 512-256-128-32-1), whole steps against its bare GEMMs",
          .flags = {{"optimizer", "adam"},
                    {"batch", "512"},
                    {"threads", "1"},
                    {"chunks", "0"},
                    {"cores", "0"},
                    {"files", ""},
                    {"readers", "1"},
                    {"steps", "60"},
                    {"rounds", "7"}},
          .run = run};
}

}  // namespace argosy::benches

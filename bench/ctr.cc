// CTR-DNN of the seeds' size, whole training steps with data in memory or from files, beside the
// limit of its matrix products (bench mlp), interleaved in this process.
#include <sched.h>

#include <optional>

#include "argosy/argosy.h"
#include "argosy/data/file_list.h"
#include "bench/bench.h"
#include "bench/ctr_work.h"
#include "bench/gemm_limit.h"

namespace argosy::benches {
namespace {

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
                              .slots = ctr_slots(),
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

// A sparse table of many rows, 9 weights with Adam's state: its memory, its growth, and the pull
// and push of a batch of zipf keys against a plain gather and scatter over a flat array.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <optional>
#include <thread>
#include <unordered_set>

#include "argosy/base/denormals.h"
#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/ps/row_table.h"
#include "bench/bench.h"
#include "bench/processes.h"

namespace argosy::benches {
namespace {

constexpr size_t kDim = 9, kRowFloats = 3 * kDim, kUnique = 6220, kBatches = 64;
constexpr double kPayload = sizeof(Key) + kRowFloats * sizeof(float);

double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double huge_page_kilobytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string word;
  double kilobytes = 0;
  while (rollup >> word)
    if (word == "AnonHugePages:") rollup >> kilobytes;
  return kilobytes;
}

/// Until the table's memory has come to rest: huge pages are made while it does not grow.
void settle() {
  constexpr std::chrono::seconds kStep(1);
  constexpr int kMostSteps = 60;
  double before = -1;
  for (int i = 0; i < kMostSteps && huge_page_kilobytes() > before; ++i) {
    before = huge_page_kilobytes();
    std::this_thread::sleep_for(kStep);
  }
}

Key key_of(uint64_t row) { return mix(row + 1); }

/// The first 6,220 different ones of a stream of zipf ranks, each mapped to a random row.
std::vector<uint64_t> zipf_rows(uint64_t rows, uint64_t seed) {
  const RandomStream random(seed);
  std::vector<uint64_t> batch;
  std::unordered_set<uint64_t> seen;
  for (uint64_t i = 0; batch.size() < std::min<uint64_t>(kUnique, rows); ++i) {
    const auto rank = static_cast<uint64_t>(std::pow(static_cast<double>(rows), random.uniform(i)));
    const uint64_t row = RandomStream(rank).below(0, rows);
    if (seen.insert(row).second) batch.push_back(row);
  }
  return batch;
}

struct Growth {
  double bytes_per_row;
  double call_ms, longest_call_ms;  // thread time of the first use of 6,220 rows: median, longest
  double spin_ms, longest_spin_ms;  // the same of spin(), after each of them
};

/// Work of a fixed size on no memory. A virtual machine's thread time counts what the host takes
/// away, so the longest of many spins shows how much of a longest call is not the table's doing.
double spin() {
  constexpr int kTurns = 500'000;
  static volatile uint64_t sink = 0;
  const double start = thread_ms();
  uint64_t x = sink;
  for (int i = 0; i < kTurns; ++i) x = mix(x);
  sink = x;
  return thread_ms() - start;
}

/// Pulls and pushes every row once, batch by batch.
Growth fill(ps::RowTable& table, uint64_t rows) {
  const double before = resident_bytes();
  std::vector<Key> keys;
  std::vector<float> values;
  ps::Ticket ticket;
  std::vector<double> times, spins;
  for (uint64_t first = 0; first < rows; first += kUnique) {
    keys.clear();
    for (uint64_t row = first; row < std::min(rows, first + kUnique); ++row)
      keys.push_back(key_of(row));
    values.resize(keys.size() * kDim);
    const double start = thread_ms();
    read_rows(table, keys, ps::Purpose::training, values, ticket);
    table.apply(ticket, values, 1);
    times.push_back(thread_ms() - start);
    spins.push_back(spin());
  }
  return {(resident_bytes() - before) / static_cast<double>(rows), median(times),
          std::ranges::max(times), median(spins), std::ranges::max(spins)};
}

/// Microseconds to find the rows of a batch, without using them.
double resolve_time(uint64_t rows, const std::vector<std::vector<uint64_t>>& batches) {
  ps::Arena arena;
  ps::RowStore store(kRowFloats, arena);
  for (uint64_t row = 0; row < rows; ++row)
    store.insert(key_of(row), ps::RowStore::hash(key_of(row)));
  std::vector<double> times;
  std::vector<float*> found(kUnique);
  for (const auto& batch : batches) {
    std::vector<Key> keys;
    std::vector<ps::Probe> probes;
    for (const uint64_t row : batch) {
      probes.push_back({ps::RowStore::hash(key_of(row)), static_cast<uint32_t>(keys.size())});
      keys.push_back(key_of(row));
    }
    const double start = seconds_now();
    store.find_all(probes, keys, kDim, found);
    times.push_back((seconds_now() - start) * 1e6);
  }
  return median(times);
}

BenchResults run(const BenchFlags& flags) {
  const auto rows = static_cast<uint64_t>(integer(flags, "rows"));
  const auto rounds = static_cast<size_t>(integer(flags, "rounds"));
  check<ConfigError>(rows >= 2 * kUnique, "--rows ", rows, ": expected at least ", 2 * kUnique);
  const FlushDenormals flush;
  std::vector<std::vector<uint64_t>> batches;
  for (size_t i = 0; i < kBatches; ++i) batches.push_back(zipf_rows(rows, i));
  const double resolve = resolve_time(rows, batches);

  const auto made = ps::make_row_table({.name = "table",
                                        .dim = kDim,
                                        .rule = "adam",
                                        .init = "uniform(-0.01, 0.01)",
                                        .learning_rate = "0.001"});
  ps::RowTable& table = *made;
  const Growth growth = fill(table, rows);
  settle();
  // On huge pages, as the table is: the plain array gets no handicap.
  ps::Arena arena;
  auto* const flat = reinterpret_cast<float*>(arena.take(rows * kRowFloats * sizeof(float)));
  std::fill_n(flat, rows * kRowFloats, 1.0F);

  std::vector<float> values(kUnique * kDim), grads(kUnique * kDim, 0.01F);
  std::vector<Key> keys(kUnique);
  ps::Ticket ticket;
  std::vector<double> pulls, pushes, flats;
  for (size_t round = 0; round < rounds * kBatches; ++round) {
    const auto& batch = batches[round % kBatches];
    for (size_t i = 0; i < kUnique; ++i) keys[i] = key_of(batch[i]);
    const double start = seconds_now();
    read_rows(table, keys, ps::Purpose::training, values, ticket);
    const double pulled = seconds_now();
    table.apply(ticket, grads, round + 1);
    const double pushed = seconds_now();
    for (size_t i = 0; i < kUnique; ++i)
      std::copy_n(flat + batch[i] * kRowFloats, kDim, values.data() + i * kDim);
    for (size_t i = 0; i < kUnique; ++i) {
      float* const row = flat + batch[i] * kRowFloats;
      for (size_t j = 0; j < kDim; ++j) row[j] += grads[i * kDim + j];
    }
    flats.push_back((seconds_now() - pushed) * 1e6);
    pulls.push_back((pulled - start) * 1e6);
    pushes.push_back((pushed - pulled) * 1e6);
  }
  return {{"rows", static_cast<double>(table.size())},
          {"bytes_per_row", growth.bytes_per_row},
          {"ratio_to_payload", growth.bytes_per_row / kPayload},
          {"grow_ms", growth.call_ms},
          {"longest_grow_ms", growth.longest_call_ms},
          {"spin_ms", growth.spin_ms},
          {"longest_spin_ms", growth.longest_spin_ms},
          {"resolve_us", resolve},
          {"pull_us", median(pulls)},
          {"push_us", median(pushes)},
          {"flat_us", median(flats)},
          {"ratio_to_flat", median(flats) / (median(pulls) + median(pushes))}};
}

}  // namespace

Bench table() {
  return {.help = "a sparse table of rows of 9 weights with Adam's state, against a flat array",
          .flags = {{"rows", "10000000"}, {"rounds", "5"}},
          .run = run};
}

}  // namespace argosy::benches

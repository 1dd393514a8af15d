// A table of more rows than its memory holds against one that is all in memory: batches of a pull
// and a push, the next batch located before the present one is used, as a worker does. Rows are 9
// weights with Adam's state, ids zipf or uniform, memory a quarter and a tenth of the payload. One
// process after the other, so that none uses what another has left.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unordered_set>

#include "argosy/base/denormals.h"
#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/ps/row_table.h"
#include "argosy/world/env.h"
#include "bench/bench.h"
#include "bench/processes.h"

namespace argosy::benches {
namespace {

constexpr size_t kDim = 9, kLookups = 13'312, kLoaded = 10'000;
constexpr double kRowBytes = sizeof(Key) + 3 * kDim * sizeof(float);
constexpr double kZipf = 1.05;

enum class Ids : uint8_t { zipf, uniform };

/// The different keys of as many lookups as a batch of 512 with 26 slots has.
std::vector<Key> batch_of(uint64_t rows, Ids ids, uint64_t number) {
  const RandomStream random(number);
  std::unordered_set<Key> keys;
  for (uint64_t i = 0; i < kLookups; ++i) {
    uint64_t row = random.below(i, rows);
    if (ids == Ids::zipf) {
      const double most = std::pow(static_cast<double>(rows), 1 - kZipf);
      const double rank = std::pow(1 + random.uniform(i) * (most - 1), 1 / (1 - kZipf));
      row = std::min<uint64_t>(static_cast<uint64_t>(rank), rows) - 1;
    }
    keys.insert(mix(row + 1));
  }
  return {keys.begin(), keys.end()};
}

struct TierRate {
  double rows_per_second = 0, resident = 0;
};

/// All rows are there before it begins; a tenth of the rounds is not counted.
TierRate measure(const std::string& store, uint64_t rows, Ids ids, size_t rounds) {
  const FlushDenormals flush;
  const auto env = real_env();
  const ps::TableHome home = ps::TableHome::temporary(*env);
  const double before = resident_bytes();
  const auto table = ps::make_row_table({.name = "table",
                                         .dim = kDim,
                                         .rule = "adam",
                                         .init = "uniform(-0.01, 0.01)",
                                         .learning_rate = "0.001",
                                         .store = store},
                                        home);
  std::vector<Key> keys;
  for (uint64_t row = 0; row < rows; row += kLoaded) {
    keys.clear();
    for (uint64_t i = row; i < std::min(rows, row + kLoaded); ++i) keys.push_back(mix(i + 1));
    table->assign(keys, std::vector<float>(keys.size() * kDim, 0.01F));
  }
  const size_t warm = rounds / 10 + 1;
  std::vector<ps::Ticket> tickets(2);
  table->locate(batch_of(rows, ids, 0), {}, {}, tickets[0]);
  std::vector<float> values, grads;
  double seconds = 0, used = 0;
  for (size_t round = 0; round < warm + rounds; ++round) {
    ps::Ticket& own = tickets[round % 2];
    const std::vector<Key> next = batch_of(rows, ids, round + 1);
    values.resize(own.keys.size() * kDim);
    grads.assign(values.size(), 0.01F);
    const double start = seconds_now();
    table->locate(next, {}, {}, tickets[(round + 1) % 2]);
    await(*table, own);
    table->read(own, ps::Purpose::training, values);
    apply_located(*table, own, grads, round + 1);
    if (round < warm) continue;
    seconds += seconds_now() - start;
    used += static_cast<double>(own.keys.size());
  }
  return {used / seconds, resident_bytes() - before};
}

BenchResults run(const BenchFlags& flags) {
  const auto rows = static_cast<uint64_t>(integer(flags, "rows", 100'000));
  const auto rounds = static_cast<size_t>(integer(flags, "rounds"));
  const auto budget = [&](int share) {
    return "log(memory=" +
           std::to_string(static_cast<uint64_t>(static_cast<double>(rows) * kRowBytes / share)) +
           ")";
  };
  BenchResults results = {{"rows", static_cast<double>(rows)},
                          {"payload_mb", static_cast<double>(rows) * kRowBytes / 1e6}};
  for (const Ids ids : {Ids::zipf, Ids::uniform}) {
    const std::string name = ids == Ids::zipf ? "zipf" : "uniform";
    double in_memory = 0;
    for (const int share : {1, 4, 10}) {
      const std::string store = share == 1 ? "memory" : budget(share);
      BenchProcess<TierRate> process([&] { return measure(store, rows, ids, rounds); });
      const TierRate rate = process.wait();
      const std::string what = name + (share == 1 ? "_memory" : "_1_of_" + std::to_string(share));
      results.emplace_back(what + "_rows_per_s", rate.rows_per_second);
      results.emplace_back(what + "_resident_mb", rate.resident / 1e6);
      if (share == 1)
        in_memory = rate.rows_per_second;
      else
        results.emplace_back(what + "_ratio", rate.rows_per_second / in_memory);
    }
  }
  return results;
}

}  // namespace

Bench tier() {
  return {.help = "a table of which a quarter or a tenth fits into memory, against one in memory",
          .flags = {{"rows", "4000000"}, {"rounds", "200"}},
          .run = run};
}

}  // namespace argosy::benches

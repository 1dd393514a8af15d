#include "argosy/ps/journal.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <memory>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/ps/row_sums.h"
#include "argosy/ps/table_file.h"
#include "argosy/ps/test_cluster.h"
#include "argosy/ps/wire.h"
#include "argosy/world/disk_env.h"

namespace argosy::ps {
namespace {

using namespace std::chrono_literals;

enum class Rows : uint8_t { in_memory, on_disk };  // but for what little fits

Placement two_tables(Rows rows = Rows::in_memory) {
  const ParameterSpec parameter{
      .name = "w", .elements = 50, .rule = "adam", .init = "uniform(-1, 1)"};
  TableSpec counted{.name = "counted",
                    .dim = 3,
                    .rule = "adam",
                    .init = "uniform(-1, 1)",
                    .entry = "count_filter(3)",
                    .track_unseen = true,
                    .shards = 4};
  TableSpec plain{.name = "plain", .dim = 2, .rule = "adagrad", .shards = 2};
  if (rows == Rows::on_disk) {
    counted.store = "log(memory=13K)";
    plain.store = "log(memory=8K)";
  }
  return place({parameter}, {counted, plain}, {0, 1}, 1);
}

/// Everything that a shard holds, as bytes.
struct Content {
  std::vector<float> parameters;
  std::vector<std::vector<std::byte>> tables;
  bool operator==(const Content&) const = default;
};

Content content_of(Shard& shard) {
  Content content{.parameters = shard.parameters(), .tables = {}};
  for (size_t i = 0; i < shard.tables(); ++i) {
    ByteBuffer bytes;
    save_table(shard.table(i), bytes);
    content.tables.emplace_back(bytes.bytes().begin(), bytes.bytes().end());
  }
  return content;
}

/// A server's shard and its journal, without a server.
struct Machine {
  Machine(Env& env, const JournalOptions& options, size_t parts = 2, Rows rows = Rows::in_memory)
      : shard(two_tables(rows), 0, parts, {.env = &env, .folder = "rows"}),
        journal(env, shard, options, "job") {}

  /// Changes rows and parameters as exchanges and verbs do.
  void change(Dice& dice, uint64_t step) {
    switch (dice.below(8)) {
      case 0:
        shard.shrink(static_cast<uint32_t>(1 + dice.below(3)));
        return;
      case 1:
        for (size_t part = 0; part < shard.parts(); ++part)
          shard.apply_parameters(part, std::vector<float>(50, 0.5F), step);
        return;
      default:
        break;
    }
    const size_t table = dice.below(2);
    std::vector<Key> keys;
    for (size_t i = 1 + dice.below(40); i > 0; --i) keys.push_back(mix(dice.below(200)));
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const std::vector<float> grads(keys.size() * shard.table(table).spec().dim,
                                   static_cast<float>(dice.below(9)) - 4);
    for (size_t part = 0; part < shard.parts(); ++part) {
      Ticket ticket;
      shard.table(table).locate(keys, {}, shard.part(part), ticket);
      apply_located(shard.table(table), ticket, grads, step);
      shard.changes()->rows_changed(part, table, ticket);
    }
  }
  void record(uint64_t step) {
    if (!journal.waiting())
      journal.collect({.mark = {.step = step, .applied = {step}, .trained = {}}});
    journal.write();
  }

  Shard shard;
  Journal journal;
};

JournalOptions options_of(uint64_t seed, bool recover) {
  return {.folder = "journal",
          .durability = seed % 2 == 0 ? Durability::journal : Durability::fsync,
          .segment_bytes = 4096,
          .recover = recover};
}

/// Reads of rows are done where they are asked for.
class ReadingEnv final : public DiskEnv {
 public:
  using DiskEnv::DiskEnv;
  TimerId schedule(Duration, std::function<void()> task) override {
    task();
    return 0;
  }
};

/// Lives of one server, each from the journal of the one before: what the last record had is there,
/// to the bit, and nothing of what came after.
void expect_exact_recovery(uint64_t seed, Rows rows = Rows::in_memory) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  SimulatedDisk disk;
  ReadingEnv env(disk, "server", seed);
  Dice dice(seed, 1);
  uint64_t step = 0;
  std::map<uint64_t, Content> written;  // by step
  {
    Machine fresh(env, options_of(seed, false), 2, rows);
    written.emplace(0, content_of(fresh.shard));
  }
  for (int life = 0; life < 4; ++life) {
    {
      Machine machine(env, options_of(seed, true), 1 + dice.below(3), rows);
      const auto& state = machine.journal.recovered();
      ASSERT_EQ(state ? state->mark.step : 0, written.rbegin()->first);
      const Content& expected = written.rbegin()->second;
      const Content found = content_of(machine.shard);
      ASSERT_EQ(found.parameters, expected.parameters);
      for (size_t i = 0; i < found.tables.size(); ++i)
        ASSERT_TRUE(found.tables[i] == expected.tables[i]) << "table " << i << ", life " << life;
      for (size_t records = dice.below(30); records > 0; --records) {
        for (size_t changes = 1 + dice.below(5); changes > 0; --changes)
          machine.change(dice, ++step);
        machine.record(step);
        written.clear();
        written.emplace(step, content_of(machine.shard));
      }
      machine.change(dice, step + 1);  // is lost
      if (dice.below(2) == 0)
        machine.journal.collect({.mark = {.step = step + 1, .applied = {step + 1}, .trained = {}}});
    }
    if (seed % 2 == 0)
      disk.crash_process("server");
    else
      disk.crash_machine("server", dice);
  }
  EXPECT_EQ(disk.file_exists("rows"), rows == Rows::on_disk);
}

TEST(Journal, RecoversWhatTheLastRecordHad) {
  const auto [first, last] = seeds_to(60);
  for (uint64_t seed = first; seed <= last; ++seed) {
    expect_exact_recovery(seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// At each step that it offers, to the bit, and it goes on from there as if nothing had followed.
TEST(Journal, OffersStepsAndGoesOnAtOneOfThem) {
  constexpr uint64_t kRun = 5;
  const auto options = [](uint64_t seed) {
    JournalOptions all = options_of(seed, false);
    all.offer = true;
    all.run = kRun;
    return all;
  };
  size_t most = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimulatedDisk disk;
    DiskEnv env(disk, "server", seed);
    Dice dice(seed, 1);
    std::map<uint64_t, Content> written;  // by step
    const auto record = [&](Machine& machine, uint64_t step) {
      machine.change(dice, step);
      machine.journal.collect({.mark = {.step = step, .applied = {step}}, .run = kRun});
      machine.journal.write();
      written[step] = content_of(machine.shard);
    };
    {
      Machine machine(env, options_of(seed, false));
      for (uint64_t step = 1; step <= 60; ++step) record(machine, step);
    }
    for (int life = 0; life < 4; ++life) {
      Machine machine(env, options(seed));
      const auto& offers = machine.journal.offers();
      ASSERT_FALSE(offers.empty());
      most = std::max(most, offers.size());
      EXPECT_EQ(offers.back().mark.step, written.rbegin()->first);
      const uint64_t step = offers[dice.below(offers.size())].mark.step;
      machine.journal.take_up(settling::at_step(step));
      EXPECT_EQ(machine.journal.recovered()->mark.step, step);
      EXPECT_TRUE(content_of(machine.shard) == written.at(step)) << "step " << step;
      written.erase(written.upper_bound(step), written.end());
      for (uint64_t next = 1; next <= 10; ++next) record(machine, step + next);
    }
  }
  EXPECT_GT(most, 5U);
}

TEST(Journal, OffersNothingOfAnotherRunOrOfAJobThatHasEnded) {
  const auto offers_of = [](const JournalState& last) {
    SimulatedDisk disk;
    DiskEnv env(disk, "server");
    {
      Machine machine(env, options_of(2, false));
      machine.journal.collect(last);
      machine.journal.write();
    }
    JournalOptions options = options_of(2, false);
    options.offer = true;
    options.run = 5;
    const Machine again(env, options);
    return again.journal.offers().size();
  };
  const ServerMark mark{.step = 7, .applied = {3, 4}};
  EXPECT_EQ(offers_of({.mark = mark, .run = 5}), 1U);
  EXPECT_EQ(offers_of({.mark = mark, .left = {1}, .run = 5}), 1U);
  EXPECT_EQ(offers_of({.mark = mark, .left = {0, 1}, .run = 5}), 0U);
  EXPECT_EQ(offers_of({.mark = mark, .run = 6}), 0U);
  EXPECT_EQ(offers_of({.mark = mark}), 0U);
}

TEST(Journal, RecoversTablesWhoseRowsAreOnTheDisk) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    expect_exact_recovery(seed, Rows::on_disk);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Journal, RemovesSegmentsThatASweepHasReplaced) {
  SimulatedDisk disk;
  DiskEnv env(disk, "server");
  Dice dice(7, 1);
  Machine machine(env, options_of(2, false));
  uint64_t most = 0;
  for (uint64_t step = 1; step <= 600; ++step) {
    machine.change(dice, step);
    machine.record(step);
    most = std::max(most, disk.used());
  }
  EXPECT_GT(machine.journal.bytes_written(), 4 * most);
  const Content last = content_of(machine.shard);
  Machine again(env, options_of(2, true));
  EXPECT_EQ(content_of(again.shard), last);
  EXPECT_EQ(again.journal.recovered()->mark.step, 600U);
}

TEST(Journal, WritesARecordAgainThatADiskDidNotTake) {
  SimulatedDisk disk;
  DiskEnv env(disk, "server");
  Dice dice(3, 1);
  Machine machine(env, options_of(1, false));
  for (uint64_t step = 1; step <= 20; ++step) {
    machine.change(dice, step);
    if (step % 4 == 0) {
      disk.inject(step % 8 == 0 ? SimulatedDisk::Operation::append : SimulatedDisk::Operation::sync,
                  SimulatedDisk::Failing::once);
      EXPECT_THROW(machine.record(step), IoError);
      disk.heal();
    }
    machine.record(step);
  }
  while (machine.journal.waiting() || machine.journal.needs_all()) machine.record(20);
  const Content last = content_of(machine.shard);
  disk.crash_machine("server", dice);
  Machine again(env, options_of(1, true));
  EXPECT_EQ(content_of(again.shard), last);
}

TEST(Journal, HasATableThatWasLoadedAsAWhole) {
  SimulatedDisk disk;
  DiskEnv env(disk, "server");
  Dice dice(5, 1);
  Machine machine(env, options_of(2, false));
  for (uint64_t step = 1; step <= 10; ++step) machine.change(dice, step);
  const auto saved = machine.shard.save(env, "saves", 1);
  const Content then = content_of(machine.shard);
  for (uint64_t step = 11; step <= 20; ++step) machine.change(dice, step);
  machine.record(20);
  const std::vector<float> parameters = then.parameters;
  machine.shard.load(env, "saves", saved);
  machine.shard.set_parameters(parameters);
  machine.record(21);
  Machine again(env, options_of(2, true));
  EXPECT_EQ(content_of(again.shard), then);
}

TEST(Journal, RefusesTheFolderOfAnotherJob) {
  SimulatedDisk disk;
  DiskEnv env(disk, "server");
  {
    Shard shard(two_tables(), 0, 1);
    Journal journal(env, shard, options_of(2, false), "night");
    journal.collect({});
    journal.write();
  }
  Shard shard(two_tables(), 0, 1);
  const auto open = [&](bool recover) {
    try {
      Journal(env, shard, options_of(2, recover), "day");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("it was opened");
  };
  EXPECT_NE(open(false).find("night"), std::string::npos) << open(false);
  EXPECT_NE(open(true).find("night"), std::string::npos) << open(true);
}

TEST(Journal, GivesUpThatOfAnEarlierRunOfTheSameJob) {
  SimulatedDisk disk;
  DiskEnv env(disk, "server");
  Dice dice(5, 1);
  {
    Machine machine(env, options_of(2, false));
    machine.change(dice, 1);
    machine.record(1);
  }
  const Machine fresh(env, options_of(2, false));
  EXPECT_FALSE(fresh.journal.recovered());
  EXPECT_EQ(fresh.shard.rows(), 0U);
}

// Clusters whose servers are killed and come back from their journals.

struct Kills {
  uint64_t seed;
  bool sync;
  uint32_t servers, workers;
};

/// What happened to the clusters of a test.
struct Happened {
  size_t clusters = 0, full = 0, refused = 0;
};

/// Every push counts, once, whatever happened to servers, disks and network.
void expect_nothing_lost(const Kills& kills, Happened& happened) {
  SCOPED_TRACE("seed " + std::to_string(kills.seed));
  constexpr int kSteps = 40;
  Cluster cluster(kills.seed,
                  {.servers = kills.servers,
                   .workers = kills.workers,
                   .steps = kSteps,
                   .sync = kills.sync,
                   .faults = kStormyNetwork,
                   .durability = kills.seed % 3 == 0 ? Durability::fsync : Durability::journal});
  Dice dice(kills.seed, 9);
  for (size_t i = 1 + dice.below(4); i > 0; --i) {
    const auto server = static_cast<uint32_t>(dice.below(kills.servers));
    const auto after = 1ms * (20 + dice.below(2500)), away = 1ms * dice.below(3000);
    if (dice.below(3) == 0)
      cluster.crash_server_and_flip(server, after, away, kills.seed);
    else
      cluster.crash_server(server, after, away);
  }
  const bool full = dice.below(3) == 0;
  if (full) cluster.fill_disk(1ms * dice.below(2500), 1ms * dice.below(8000));
  ASSERT_TRUE(cluster.run()) << cluster.log();
  ++happened.clusters;
  happened.full += full ? 1 : 0;
  happened.refused += cluster.refusals();
  const auto workers = static_cast<float>(kills.workers);
  for (uint32_t w = 0; w < kills.workers; ++w) {
    ASSERT_EQ(cluster.worker(w).error(), nullptr) << cluster.log();
    EXPECT_EQ(cluster.worker(w).acknowledged(), kSteps);
    EXPECT_EQ(cluster.value(w), kills.sync ? kSteps / workers : kSteps) << cluster.log();
  }
  EXPECT_EQ(cluster.value(kShared), kills.sync ? kSteps : kSteps * workers) << cluster.log();
  EXPECT_EQ(cluster.parameter_sums(),
            std::vector<float>(kClusterParameter, kills.sync ? kSteps : kSteps * workers))
      << cluster.log();
}

void expect_nothing_lost(bool sync) {
  const auto [first, last] = seeds_to(150);
  Happened happened;
  for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed)
    expect_nothing_lost({seed, sync, 1 + static_cast<uint32_t>(seed % 3), sync ? 4U : 3U},
                        happened);
  std::cout << "seeds " << first << " to " << last << ": " << happened.clusters
            << " clusters with crashed servers, " << happened.full << " of them on full disks, "
            << happened.refused << " journals refused for a flipped bit\n";
  if (last - first > 100) {
    EXPECT_GT(happened.refused, 5U);
  }
}

TEST(Journal, LosesNothingOfAsyncClustersWhoseServersAreKilled) { expect_nothing_lost(false); }
TEST(Journal, LosesNothingOfSyncClustersWhoseServersAreKilled) { expect_nothing_lost(true); }

}  // namespace
}  // namespace argosy::ps

#include "argosy/ps/cut.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/ps/table_file.h"
#include "argosy/ps/test_cluster.h"
#include "argosy/ps/test_cut.h"
#include "argosy/world/disk_env.h"

namespace argosy::ps {
namespace {

using namespace std::chrono_literals;

/// A cut of a cluster while its workers go on, and what came of it.
struct TakenCut {
  std::string folder;
  std::vector<verbs::Cut::Result> parts = {};  // by server
  size_t answers = 0;
  std::string error = {};
};

void begin_cut(Cluster& cluster, TakenCut& cut) {
  Client& client = cluster.worker(0).client();
  const uint32_t servers = cluster.placement().servers;
  cut.parts.resize(servers);
  for (uint32_t server = 0; server < servers; ++server)
    client.ask(server, request_of(verbs::Cut{cut.folder, client.last_exchange()}),
               [&cut, server](std::exception_ptr error, const std::vector<std::byte>& answer) {
                 ++cut.answers;
                 if (error == nullptr) {
                   cut.parts[server] = answer_of<verbs::Cut>(answer);
                   if (cut.parts[server].late) cut.error = "late";
                   return;
                 }
                 try {
                   std::rethrow_exception(error);
                 } catch (const std::exception& e) {
                   cut.error = e.what();
                 }
               });
}

/// First weights by key, of all servers.
std::map<Key, float> rows_of(Env& env, const TakenCut& cut) {
  std::map<Key, float> rows;
  for (const verbs::Cut::Result& part : cut.parts) {
    EXPECT_EQ(part.tables.size(), 1U);
    const auto bytes = open_table_file(env, cut.folder, part.tables[0]);
    TableReader reader(*bytes);
    while (const auto block = reader.next())
      for (size_t i = 0; i < block->keys.size(); ++i) {
        EXPECT_FALSE(rows.contains(block->keys[i]));
        rows[block->keys[i]] = block->images[i * reader.layout().row_floats];
      }
    EXPECT_EQ(reader.sum().rows, part.tables[0].sum.rows);
  }
  return rows;
}

float row(const std::map<Key, float>& rows, Key key) {
  const auto found = rows.find(key);
  return found == rows.end() ? 0.0F : found->second;
}

/// What a cut holds is what its marks say, to the push.
void expect_exact(Cluster& cluster, const TakenCut& cut, bool sync, uint32_t workers) {
  Env& env = cluster.simulation().host_env("reader");
  const std::map<Key, float> rows = rows_of(env, cut);
  const auto pushes = [&](uint32_t server, uint32_t worker) {  // the first exchange only pulls
    const uint64_t applied = cut.parts[server].mark.applied[worker];
    return static_cast<float>(applied > 0 ? applied - 1 : 0);
  };
  for (uint32_t worker = 0; worker < workers; ++worker) {
    const float pushed = pushes(cluster.placement().server_of(worker), worker);
    EXPECT_EQ(row(rows, worker), sync ? pushed / static_cast<float>(workers) : pushed);
  }
  for (uint32_t server = 0; server < cut.parts.size(); ++server) {
    const verbs::Cut::Result& part = cut.parts[server];
    float expected = 0;
    for (uint32_t worker = 0; worker < workers; ++worker) expected += pushes(server, worker);
    if (sync) expected = static_cast<float>(part.mark.step);
    for (const float value : read_cut_parameters(env, cut.folder, part.part.file))
      EXPECT_EQ(value, expected);
    EXPECT_EQ(part.mark.applied[0], cut.parts[0].mark.applied[0]) << "worker 0 asked all at once";
    if (sync) {
      EXPECT_EQ(part.mark.step, cut.parts[0].mark.step);
    }
  }
}

struct CutRun {
  uint64_t seed;
  bool sync;
};

/// Cuts of a cluster on a bad network, one after the other, while servers may be killed. Returns
/// how many were finished.
size_t expect_exact_cuts(const CutRun& run) {
  SCOPED_TRACE("seed " + std::to_string(run.seed));
  const uint32_t servers = 1 + static_cast<uint32_t>(run.seed % 3), workers = run.sync ? 4 : 3;
  Cluster cluster(run.seed, {.servers = servers,
                             .workers = workers,
                             .steps = 40,
                             .sync = run.sync,
                             .faults = kStormyNetwork,
                             .durability = Durability::journal});
  Dice dice(run.seed, 3);
  if (run.seed % 4 == 0)
    cluster.crash_server(static_cast<uint32_t>(dice.below(servers)), 1ms * (20 + dice.below(2000)),
                         1ms * dice.below(2000));
  std::vector<TakenCut> cuts(4);
  for (size_t i = 0; i < cuts.size(); ++i) {
    cuts[i].folder = "saves/cut-" + std::to_string(i);
    cluster.simulation().env().schedule(1ms * (50 + dice.below(300) + 500 * i), [&, i] {
      if (!cluster.worker(0).finished()) begin_cut(cluster, cuts[i]);
    });
  }
  EXPECT_TRUE(cluster.run()) << cluster.log();
  size_t finished = 0;
  for (const TakenCut& cut : cuts) {
    if (cut.answers < servers || !cut.error.empty()) continue;
    ++finished;
    expect_exact(cluster, cut, run.sync, workers);
  }
  const auto all = static_cast<float>(run.sync ? 40 : 40 * workers);
  EXPECT_EQ(cluster.value(kShared), all) << "training went on";
  return finished;
}

TEST(Cut, HoldsOneStepOfSyncClusters) {
  size_t finished = 0;
  for (uint64_t seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed)
    finished += expect_exact_cuts({seed, true});
  EXPECT_GT(finished, 60U);
}

TEST(Cut, HoldsWhatItsMarksSayOfAsyncClusters) {
  size_t finished = 0;
  for (uint64_t seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed)
    finished += expect_exact_cuts({seed, false});
  EXPECT_GT(finished, 60U);
}

TEST(Cut, LoadsIntoAnotherNumberOfServers) {
  Cluster cluster(5, {.servers = 3,
                      .steps = 30,
                      .faults = {.min_delay = 1ms, .max_delay = 5ms},
                      .durability = Durability::journal});
  TakenCut cut{.folder = "saves/cut-1"};
  cluster.simulation().env().schedule(20ms, [&] { begin_cut(cluster, cut); });
  ASSERT_TRUE(cluster.run()) << cluster.log();
  ASSERT_EQ(cut.error, "");
  ASSERT_EQ(cut.answers, 3U);
  Env& env = cluster.simulation().host_env("reader");
  std::vector<SavedTable> files;
  for (const verbs::Cut::Result& part : cut.parts)
    files.insert(files.end(), part.tables.begin(), part.tables.end());
  std::map<Key, float> loaded;
  for (uint32_t index = 0; index < 2; ++index) {
    Shard shard(cluster_placement(2, "memory"), index, 2);
    shard.load(env, cut.folder, files);
    RowImages::Cursor cursor;
    shard.table(0).images().visit(
        Section::rows, cursor, 1000,
        [&](Key key, std::span<const float> image) { loaded[key] = image[0]; });
  }
  EXPECT_EQ(loaded, rows_of(env, cut));
}

// One journal, without a server.

TEST(Cut, StoppedAnywhereLeavesTheOneBeforeAndPerhapsItself) {
  size_t stopped = 0, finished = 0;
  for (uint64_t point = 0; point < 200; ++point) {
    SCOPED_TRACE("stopped after " + std::to_string(point % 50) + " changes, seed " +
                 std::to_string(point));
    SimulatedDisk disk;
    DiskEnv env(disk, "server", point);
    Dice dice(point, 4);
    Held before, during;
    {
      OneServer server(env, false);
      uint64_t step = 0;
      for (; step < 20; ++step) {
        server.change(dice, step + 1, 60);
        server.record(step + 1);
      }
      server.cut("saves/cut-1", ++step);
      before = held_by(server.shard);
      for (size_t i = 0; i < 1 + point % 7; ++i) server.change(dice, ++step, 40);
      during = held_by(server.shard);
      disk.stop_after(point % 50);
      try {
        server.cut("saves/cut-2", step);
      } catch (const SimulatedDisk::Stopped&) {
        ++stopped;
      }
    }
    if (point % 2 == 0)
      disk.crash_process("server");
    else
      disk.crash_machine("server", dice);
    EXPECT_TRUE(held_by_cut(env, "saves/cut-1") == before);
    if (env.file_exists("saves/cut-2/server-0.cut")) {
      ++finished;
      EXPECT_TRUE(held_by_cut(env, "saves/cut-2") == during);
    }
    if (point % 2 == 0) {  // what was not synced is gone with the machine
      const OneServer again(env, true);
      EXPECT_TRUE(again.journal.recovered());
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(stopped, 40U);
  EXPECT_GT(finished, 40U);
}

TEST(Cut, AddsWhatHasChanged) {
  SimulatedDisk disk;
  DiskEnv env(disk, "server");
  Dice dice(1, 5);
  OneServer server(env, false);
  for (uint64_t step = 1; step <= 100; ++step) {
    server.change(dice, step, 200, 20000);
    server.record(step);
  }
  server.cut("saves/cut-1", 101);
  const uint64_t whole = server.added;
  server.cut("saves/cut-2", 102);
  EXPECT_LT(server.added, whole / 100) << "nothing had changed, of " << whole;
  server.shard.shrink(100);
  server.cut("saves/cut-3", 103);
  EXPECT_LT(server.added, whole / 100);
  EXPECT_TRUE(held_by_cut(env, "saves/cut-3") == held_by(server.shard));
}

TEST(Cut, AddsWhatHasChangedOnceIfItIsPrepared) {
  SimulatedDisk disk;
  DiskEnv env(disk, "server");
  Dice dice(1, 5);
  OneServer server(env, false);
  uint64_t step = 0;
  for (; step < 100; ++step) {
    server.apply(dice, step + 1, 300, 20000);
    server.record(step + 1);
  }
  server.cut("saves/cut-1", ++step);
  for (const uint64_t end = step + 200; step < end; ++step) {  // the same few rows
    server.apply(dice, step + 1, 60, 200);
    server.record(step + 1);
  }
  server.prepare_cut(++step);
  server.cut("saves/cut-2", ++step);
  constexpr uint64_t kRow = sizeof(Key) + (1 + 3 * 3) * sizeof(float);
  EXPECT_LT(server.added, 200 * kRow * 3 / 2 + 2000);
  EXPECT_TRUE(held_by_cut(env, "saves/cut-2") == held_by(server.shard));
}

/// Changes, records, sweeps, preparations and cuts in any order, cuts that are removed, and
/// journals that are opened again.
TEST(Cut, HoldsWhatItsServerHeldWhateverCameBefore) {
  size_t cuts = 0, small = 0;
  for (uint64_t seed = 1; seed <= 40 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimulatedDisk disk;
    DiskEnv env(disk, "server", seed);
    Dice dice(seed, 7);
    auto server = std::make_unique<OneServer>(env, false);
    uint64_t step = 0;
    for (size_t round = 0; round < 12; ++round) {
      for (size_t records = dice.below(40); records > 0; --records) {
        ++step;
        if (dice.hit(0.02))
          server->change(dice, step, 40);
        else
          server->apply(dice, step, 1 + dice.below(60), 50 + dice.below(400));
        server->record(step);
      }
      if (dice.hit(0.6)) server->prepare_cut(++step);
      if (dice.hit(0.3)) server->apply(dice, ++step, 20, 400);
      const std::string folder = "saves/cut-" + std::to_string(++cuts);
      server->cut(folder, ++step);
      if (server->added < 9000) ++small;
      ASSERT_TRUE(held_by_cut(env, folder) == held_by(server->shard)) << "round " << round;
      if (dice.hit(0.2))
        for (const std::string& name : env.list_files(folder + "/server-0"))
          env.remove_file(fmt::format("{}/server-0/{}", folder, name));
      if (dice.hit(0.1)) {
        server.reset();
        server = std::make_unique<OneServer>(env, true);
      }
    }
  }
  EXPECT_GT(small, cuts / 10) << "of " << cuts;
}

TEST(Cut, KeepsItsSegmentsWhenTheJournalLetsThemGo) {
  SimulatedDisk disk;
  DiskEnv env(disk, "server");
  Dice dice(2, 5);
  OneServer server(env, false);
  uint64_t step = 0;
  for (; step < 30; ++step) {
    server.change(dice, step + 1, 60);
    server.record(step + 1);
  }
  server.cut("saves/cut-1", ++step);
  const Held before = held_by(server.shard);
  const std::vector<std::string> linked = env.list_files("saves/cut-1/server-0");
  for (const uint64_t end = step + 200; step < end; ++step) {
    server.change(dice, step + 1, 60);
    server.record(step + 1);
  }
  EXPECT_FALSE(env.file_exists("journal/" + linked.front())) << "the journal was swept";
  EXPECT_TRUE(held_by_cut(env, "saves/cut-1") == before);
}

template <class F>
void expect_named(F read, const std::vector<std::string>& words) {
  const std::string message = message_of<DataError>(read);
  for (const std::string& word : words) EXPECT_TRUE(has(message, word)) << message;
}

TEST(Cut, RefusesDamageByNameAndOffset) {
  SimulatedDisk disk;
  DiskEnv env(disk, "server");
  Dice dice(3, 5);
  OneServer server(env, false);
  for (uint64_t step = 1; step <= 60; ++step) {
    server.change(dice, step, 60);
    server.record(step);
  }
  server.cut("saves/cut-1", 61);
  server.change(dice, 62, 60);
  server.cut("saves/cut-2", 62);
  const auto read = [&](const std::string& dir) { return [&env, dir] { held_by_cut(env, dir); }; };
  const CutPart part = read_cut_part(env, "saves/cut-1", "server-0.cut");
  ASSERT_GT(part.segments.size(), 1U);
  const std::string first = log_segment_path("saves/cut-1/server-0", part.segments[0].number);

  disk.flip_bit(first, part.segments[0].bytes / 2, 3);
  expect_named(read("saves/cut-1"), {first, "offset"});
  disk.flip_bit(first, part.segments[0].bytes / 2, 3);
  disk.flip_bit("saves/cut-1/server-0.cut", 200, 1);
  expect_named(read("saves/cut-1"), {"saves/cut-1/server-0.cut", "checksum"});
  disk.flip_bit("saves/cut-1/server-0.cut", 200, 1);
  held_by_cut(env, "saves/cut-1");

  env.remove_file(first);
  expect_named(read("saves/cut-1"), {first, "missing"});
  env.link_file(log_segment_path("saves/cut-1/server-0", part.segments[1].number), first);
  expect_named(read("saves/cut-1"), {first});
}

TEST(Cut, IsCopiedWhereItCannotBeLinked) {
  SimulatedDisk disk;
  DiskEnv env(disk, "server");
  Dice dice(4, 5);
  OneServer server(env, false);
  server.change(dice, 1, 60);
  server.record(1);
  SealedLog sealed = server.journal.cut("saves/cut-1/server-0");
  for (SealedLog::Segment& segment : sealed.segments) {
    env.remove_file(log_segment_path(sealed.folder, segment.segment.number));
    segment.linked = false;
  }
  CutPart part{.placement = server.shard.placement(),
               .identity = sealed.identity,
               .last_record = sealed.last_record,
               .rows = {server.shard.table(0).size()}};
  part.segments = finish_links(env, std::move(sealed));
  write_cut_part(env, "saves/cut-1", part);
  EXPECT_TRUE(held_by_cut(env, "saves/cut-1") == held_by(server.shard));
}

}  // namespace
}  // namespace argosy::ps

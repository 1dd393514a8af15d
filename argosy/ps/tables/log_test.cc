// What the table of rows in memory and on the disk promises beyond that of every kind
// (tests/conformance): rows come back from the disk as they went there, the disk does not fill up,
// and what is wrong with it is said.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/base/thread.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/tier_metrics.h"
#include "argosy/world/disk_env.h"
#include "argosy/world/env.h"

namespace argosy::ps {
namespace {

/// Tasks run when run() is called.
class QueueEnv final : public DiskEnv {
 public:
  using DiskEnv::DiskEnv;
  TimerId schedule(Duration, std::function<void()> task) override {
    tasks_.push_back(std::move(task));
    return 0;
  }
  size_t run() {
    size_t ran = 0;
    for (; !tasks_.empty(); ++ran) {
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
    return ran;
  }

 private:
  std::deque<std::function<void()>> tasks_;
};

constexpr size_t kDim = 32;

TableSpec adding_spec(std::string store, std::string entry = "") {
  return {.name = "ids",
          .dim = kDim,
          .rule = "add",
          .learning_rate = "1",
          .entry = std::move(entry),
          .track_unseen = true,
          .shards = 2,
          .store = std::move(store)};
}

/// A table of sums on a simulated disk, with what should be in it.
class TierOfSums {
 public:
  explicit TierOfSums(uint64_t seed, std::string store = "log(memory=24K)", std::string entry = "")
      : random(seed),
        table(make_row_table(adding_spec(std::move(store), std::move(entry)),
                             {.env = &env, .folder = "rows", .metrics = metrics})) {}

  uint64_t draw(uint64_t n) { return random.below(drawn_++, n); }
  std::vector<Key> keys(size_t most, Key among) {
    std::set<Key> chosen;
    const size_t n = 1 + draw(most);
    for (size_t i = 0; i < n; ++i) chosen.insert(draw(among));
    return {chosen.begin(), chosen.end()};
  }

  void apply(std::span<const Key> some, float value) {
    locate(some);
    table->apply(ticket, std::vector<float>(some.size() * kDim, value), 1);
    for (const Key key : some) sums[key] = {sums[key].value + value, 0};
  }
  std::vector<float> read(std::span<const Key> some) {
    locate(some);
    std::vector<float> rows(some.size() * kDim, -1);
    table->read(ticket, Purpose::inference, rows);
    return rows;
  }
  void put(std::span<const Key> some, float value, float unseen) {
    std::vector<float> images;
    for (const Key key : some) {
      images.push_back(unseen);
      images.insert(images.end(), kDim, value);
      sums[key] = {value, unseen};
    }
    table->images().put(Section::rows, some, images);
  }
  size_t shrink(uint32_t unseen) {
    for (auto& [key, row] : sums) ++row.unseen;
    std::erase_if(sums, [&](const auto& row) { return row.second.unseen >= unseen; });
    return table->shrink(unseen);
  }
  /// All rows, as images and as they are read.
  void compare() {
    const std::vector<Key> all = table->images().keys(Section::rows);
    ASSERT_EQ(table->size(), sums.size());
    ASSERT_EQ(all.size(), sums.size());
    std::vector<Key> found;
    std::vector<float> images;
    table->images().read(Section::rows, all, found, images);
    ASSERT_EQ(found, all);
    size_t at = 0;
    for (const auto& [key, row] : sums) {
      ASSERT_EQ(all[at], key);
      std::vector<float> image(kDim + 1, row.value);
      image[0] = row.unseen;
      ASSERT_TRUE(
          std::ranges::equal(std::span(images).subspan(at * image.size(), image.size()), image))
          << key;
      ++at;
    }
  }

  struct Row {
    float value = 0, unseen = 0;
  };
  SimulatedDisk disk;
  QueueEnv env{disk, "host"};
  const std::shared_ptr<TierMetrics> metrics = std::make_shared<TierMetrics>();
  RandomStream random;
  std::unique_ptr<RowTable> table;
  Ticket ticket;
  std::map<Key, Row> sums;

 private:
  void locate(std::span<const Key> some) {
    table->locate(some, {}, {}, ticket);
    env.run();
    ASSERT_TRUE(table->ready(ticket));
  }
  uint64_t drawn_ = 0;
};

constexpr size_t kRecord = 16 + 4 * (1 + kDim);  // bytes of a row on the disk

TEST(LogTable, EqualsAMapThroughEvictionsAndCompactions) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    TierOfSums tier(seed);
    uint64_t written = 0;
    for (int i = 0; i < 1500 && !testing::Test::HasFatalFailure(); ++i) {
      const uint64_t what = tier.draw(100);
      if (what < 60) {
        tier.apply(tier.keys(20, 400), static_cast<float>(1 + tier.draw(5)));
      } else if (what < 90) {
        const std::vector<Key> keys = tier.keys(30, 400);
        const std::vector<float> rows = tier.read(keys);
        for (size_t k = 0; k < keys.size(); ++k) {
          const auto row = tier.sums.find(keys[k]);
          ASSERT_EQ(rows[k * kDim], row == tier.sums.end() ? 0 : row->second.value) << keys[k];
        }
      } else if (what < 98) {
        tier.put(tier.keys(20, 400), static_cast<float>(tier.draw(100)),
                 static_cast<float>(tier.draw(3)));
      } else {
        const size_t before = tier.sums.size();
        const size_t erased = tier.shrink(static_cast<uint32_t>(5 + tier.draw(10)));
        ASSERT_EQ(erased, before - tier.sums.size());
      }
      written = std::max(written, tier.disk.used());
      // Twice what is there, and what buffers and unfinished segments may add.
      ASSERT_LE(tier.disk.used(), 2 * tier.sums.size() * kRecord + 3 * (size_t{24} << 10));
      if (i % 100 == 0) tier.compare();
    }
    tier.compare();
    EXPECT_GT(written, size_t{20} << 10);  // or nothing of this has been on the disk
    tier.table.reset();
    EXPECT_EQ(tier.disk.used(), 0U);
  }
}

TEST(LogTable, ReadsColdRowsBeforeTheyAreUsed) {
  TierOfSums tier(1);
  std::vector<Key> keys(400);
  for (Key key = 0; key < keys.size(); ++key) keys[key] = key;
  for (size_t at = 0; at < keys.size(); at += 10)
    tier.apply(std::span(keys).subspan(at, 10), static_cast<float>(at));
  const std::span<const Key> cold = std::span(keys).first(10);
  tier.table->locate(cold, {}, {}, tier.ticket);
  EXPECT_FALSE(tier.table->ready(tier.ticket));
  bool told = false;
  tier.table->when_ready(tier.ticket, [&] { told = true; });
  EXPECT_FALSE(told);
  EXPECT_GT(tier.env.run(), 0U);
  EXPECT_TRUE(told);
  ASSERT_TRUE(tier.table->ready(tier.ticket));
  EXPECT_EQ(tier.metrics->misses.value(), cold.size());
  EXPECT_GE(tier.metrics->read_bytes.value(), cold.size() * kRecord);
  EXPECT_GT(tier.metrics->live_bytes.value(), 0);
  // The rows are in memory: the disk is not asked again.
  tier.disk.inject(SimulatedDisk::Operation::read, SimulatedDisk::Failing::always);
  std::vector<float> rows(cold.size() * kDim, -1);
  tier.table->read(tier.ticket, Purpose::inference, rows);
  EXPECT_EQ(rows, std::vector<float>(rows.size(), 0));
}

TEST(LogTable, NamesFileAndOffsetOfADamagedRow) {
  TierOfSums tier(2);
  std::vector<Key> keys(400);
  for (Key key = 0; key < keys.size(); ++key) keys[key] = key;
  for (size_t at = 0; at < keys.size(); at += 10)
    tier.apply(std::span(keys).subspan(at, 10), static_cast<float>(at));
  const std::vector<std::string> files = tier.disk.list_files("rows");
  ASSERT_FALSE(files.empty());
  for (const std::string& file : files)
    for (size_t at = 0; at < tier.env.file_size("rows/" + file); at += kRecord)
      tier.disk.flip_bit("rows/" + file, at + 20, 3);
  size_t refused = 0;
  for (size_t at = 0; at < keys.size(); at += 10) {
    const std::string error =
        message_of<DataError>([&] { tier.read(std::span(keys).subspan(at, 10)); });
    if (!has(error, ".tier: offset ")) continue;
    EXPECT_TRUE(has(error, "rows/ids.0")) << error;
    EXPECT_TRUE(has(error, ": a row of 148 bytes does not fit its sum")) << error;
    ++refused;
  }
  EXPECT_GT(refused, 5U);
}

TEST(LogTable, LosesNothingOnAFullDisk) {
  TierOfSums tier(3);
  tier.disk.set_capacity(size_t{10} << 10);
  std::map<Key, TierOfSums::Row> before;
  std::string error;
  for (Key key = 0; key < 2000 && error.empty(); key += 10) {
    std::vector<Key> keys(10);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = key + i;
    before = tier.sums;
    try {
      tier.apply(keys, static_cast<float>(key));
    } catch (const IoError& e) {
      error = e.what();
      tier.sums = before;
    }
  }
  EXPECT_TRUE(has(error, "No space left")) << error;
  // Once there is room everything goes on; of what was refused a part may have been applied.
  tier.disk.set_capacity(size_t{1} << 30);
  for (const auto& [key, row] : tier.sums)
    ASSERT_EQ(tier.read(std::vector<Key>{key})[0], row.value) << key;
  for (Key key = 5000; key < 5400; key += 10) {
    std::vector<Key> keys(10);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = key + i;
    tier.apply(keys, 7);
  }
  for (const auto& [key, row] : tier.sums)
    ASSERT_EQ(tier.read(std::vector<Key>{key})[0], row.value) << key;
}

/// All add to all rows, through two tickets each, while others walk and shrink the memory.
TEST(LogTable, LosesNoSumBetweenThreadsThatShareItsMemory) {
  constexpr size_t kThreads = 4, kRounds = 150, kKeys = 2000;
  const auto env = real_env();
  const TestFolder folder;
  TableSpec spec = adding_spec("log(memory=96K)");
  spec.shards = 4;
  const auto table = make_row_table(spec, TableHome::in(*env, folder.path()));
  std::vector<std::map<Key, float>> added(kThreads);
  {
    std::vector<Thread> threads;
    for (size_t number = 0; number < kThreads; ++number)
      threads.emplace_back("adds", [&, number] {
        const RandomStream draws(number);
        uint64_t drawn = 0;
        const auto next = [&] {
          std::set<Key> keys;
          for (int i = 0; i < 40; ++i) keys.insert(draws.below(drawn++, kKeys));
          return std::vector<Key>(keys.begin(), keys.end());
        };
        Ticket tickets[2];
        table->locate(next(), {}, {}, tickets[0]);
        for (size_t round = 0; round < kRounds; ++round) {
          Ticket& own = tickets[round % 2];
          table->locate(next(), {}, {}, tickets[(round + 1) % 2]);
          std::vector<float> rows(own.keys.size() * kDim);
          await(*table, own);
          table->read(own, Purpose::training, rows);
          for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], rows[i / kDim * kDim]);
          apply_located(*table, own, std::vector<float>(rows.size(), 1), 1);
          for (const Key key : own.keys) ++added[number][key];
          if (round % 30 == number) table->images().keys(Section::rows);
          if (round % 50 == number) table->images().begin_load();
        }
      });
  }
  std::map<Key, float> sums;
  for (const auto& own : added)
    for (const auto& [key, sum] : own) sums[key] += sum;
  EXPECT_EQ(table->size(), sums.size());
  for (const auto& [key, sum] : sums) ASSERT_EQ(peek(*table, std::vector<Key>{key})[0], sum) << key;
}

TEST(LogTable, RemovesTheFilesOfAnEarlierRunAndItsOwn) {
  SimulatedDisk disk;
  QueueEnv env(disk, "host");
  env.make_directories("rows");
  for (const char* const name :
       {"ids.0000000007.tier", "ids.0.0000000007.tier", "ids.tier", "other.0000000007.tier"})
    env.create_file(std::string("rows/") + name);
  const TableHome home{.env = &env, .folder = "rows"};
  make_row_table(adding_spec("log(memory=24K)"), home);
  EXPECT_EQ(disk.list_files("rows"), (std::vector<std::string>{"ids.0.0000000007.tier", "ids.tier",
                                                               "other.0000000007.tier"}));
}

TEST(LogTable, RefusesWhatCannotWork) {
  SimulatedDisk disk;
  QueueEnv env(disk, "host");
  const TableHome home{.env = &env, .folder = "rows"};
  const auto refusal = [&](const std::string& store, const TableHome& where) {
    return message_of<ConfigError>([&] { make_row_table(adding_spec(store), where); });
  };
  EXPECT_EQ(
      refusal("log(memory=24K)", {}),
      "table 'ids': store 'log(memory=24K)' keeps rows on the disk, and there is no folder for "
      "them");
  EXPECT_EQ(
      refusal("log(memory=3K)", home),
      "table 'ids': memory=3K is too little, 2 shards of rows of 152 bytes need at least 11776");
  EXPECT_EQ(refusal("log(memory=much)", home),
            "table 'ids': memory of its store is 'much', expected bytes such as 2G, 512M or 65536");
}

TEST(LogTable, RefusesABatchThatItsMemoryCannotHold) {
  TierOfSums tier(4);
  std::vector<Key> keys(1000);
  for (Key key = 0; key < keys.size(); ++key) keys[key] = key;
  const std::string error = message_of<ConfigError>([&] { tier.apply(keys, 1); });
  EXPECT_TRUE(has(error,
                  "table 'ids': 1000 rows of 152 bytes are applied at once, but memory=24K has "
                  "room for "))
      << error;
  EXPECT_EQ(tier.table->size(), 0U);
}

}  // namespace
}  // namespace argosy::ps

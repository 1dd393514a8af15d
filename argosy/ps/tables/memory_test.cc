// What the table in memory promises beyond that of every kind (tests/conformance).
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/ps/row_table.h"

namespace argosy::ps {
namespace {

TEST(MemoryTable, GrowthToAMillionKeysKeepsAllValues) {
  constexpr size_t kRows = 1'000'000, kBatch = 10'000;
  const auto table = make_row_table({.name = "ids", .dim = 1});
  std::vector<Key> keys(kBatch);
  std::vector<float> rows(kBatch);
  const auto batch = [&](size_t first) {
    for (size_t i = 0; i < kBatch; ++i) {
      keys[i] = (first + i) * (first % 20'000 == 0 ? 1 : 0x9e3779b97f4a7c15ULL);
      rows[i] = static_cast<float>(first + i);
    }
  };
  for (size_t first = 0; first < kRows; first += kBatch) {
    batch(first);
    table->assign(keys, rows);
  }
  EXPECT_EQ(table->size(), kRows);
  for (size_t first = 0; first < kRows; first += kBatch) {
    batch(first);
    ASSERT_EQ(peek(*table, keys), rows) << first;
  }
}

TEST(MemoryTable, ErasedPlacesAreUsedAgain) {
  const auto table = make_row_table({.name = "ids", .dim = 1, .track_unseen = true, .shards = 1});
  for (size_t round = 0; round < 20; ++round) {
    std::vector<Key> keys(5000);
    std::vector<float> rows(5000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = mix(round * 5000 + i);
    for (size_t i = 0; i < keys.size(); ++i) rows[i] = static_cast<float>(i);
    table->assign(keys, rows);
    EXPECT_EQ(peek(*table, keys), rows);
    EXPECT_EQ(table->shrink(2), round == 0 ? 0U : 5000U);
    EXPECT_EQ(table->size(), 5000U);
  }
}

TEST(MemoryTable, ShardsAreAPowerOfTwo) {
  for (const size_t shards : {0, 12, 8192})
    EXPECT_EQ(message_of<ConfigError>(
                  [&] { make_row_table({.name = "ids", .dim = 2, .shards = shards}); }),
              "table 'ids': shards is " + std::to_string(shards) +
                  ", expected a power of two up to 4096");
}

}  // namespace
}  // namespace argosy::ps

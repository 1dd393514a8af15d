#include "argosy/ps/row_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

/// The key with this hash: mix() undone.
Key key_with(uint64_t hash) {
  hash ^= hash >> 31 ^ hash >> 62;
  hash *= 0x319642b2d24d8ec3ULL;
  hash ^= hash >> 27 ^ hash >> 54;
  hash *= 0x96de1b173f119089ULL;
  return hash ^ hash >> 30 ^ hash >> 60;
}

TEST(RowStore, RowsOfNineWeightsWithAdamFillCacheLines) {
  Arena arena;
  RowStore store(27, arena);
  for (Key key = 0; key < 100; ++key) {
    const float* row = store.insert(key, RowStore::hash(key));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(row - 2) % 64, 0U);
  }
}

TEST(RowStore, RowsStayWhereTheyAreWhileTheIndexGrows) {
  Arena arena;
  RowStore store(1, arena);
  std::vector<float*> rows;
  for (Key key = 0; key < 20'000; ++key) {
    rows.push_back(store.insert(key, RowStore::hash(key)));
    *rows.back() = static_cast<float>(key);
  }
  for (Key key = 0; key < rows.size(); ++key) {
    ASSERT_EQ(store.find(key, RowStore::hash(key)), rows[key]);
    ASSERT_EQ(*rows[key], static_cast<float>(key));
  }
  EXPECT_EQ(store.find(20'000, RowStore::hash(20'000)), nullptr);
}

TEST(RowStore, KeysThatDifferOnlyOutsideTheTagAreToldApart) {
  Arena arena;
  RowStore store(1, arena);
  std::vector<Key> keys;
  for (uint64_t i = 0; i < 500; ++i) keys.push_back(key_with(i));  // one home, one tag
  std::vector<Probe> probes;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(RowStore::hash(keys[i]), i);
    *store.insert(keys[i], i) = static_cast<float>(i);
    probes.push_back({i, i});
  }
  std::vector<float*> found(keys.size());
  store.find_all(probes, keys, 1, found);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(*found[i], static_cast<float>(i));
}

TEST(RowStore, KeysMadeToCollideAreRefusedBeforeTheyEatTheMemory) {
  Arena arena;
  RowStore store(1, arena);
  const auto insert = [&] {
    for (uint64_t hash = 0; hash < 4096; ++hash) store.insert(key_with(hash), hash);
  };
  EXPECT_THROW(insert(), DataError);
  const size_t before = store.size();
  for (uint64_t hash = 0; hash < before; ++hash)
    ASSERT_NE(store.find(key_with(hash), hash), nullptr) << hash;
}

TEST(RowStore, ErasedRowsAreGoneAndTheirPlacesUsedAgain) {
  Arena arena;
  RowStore store(2, arena);
  float* const first = store.insert(1, RowStore::hash(1));
  first[1] = 5;
  store.erase(1, RowStore::hash(1));
  EXPECT_EQ(store.find(1, RowStore::hash(1)), nullptr);
  EXPECT_EQ(store.size(), 0U);
  float* const second = store.insert(2, RowStore::hash(2));
  EXPECT_EQ(second, first);
  EXPECT_EQ(second[1], 0.0F);
}

TEST(RowStore, RowsMayBeLargerThanASlab) {
  for (const size_t floats : {size_t{32} << 10, size_t{64} << 10, size_t{100} << 10}) {
    Arena arena;
    RowStore store(floats, arena);
    for (Key key = 0; key < 5; ++key) {
      float* const row = store.insert(key, RowStore::hash(key));
      std::fill_n(row, floats, static_cast<float>(key));
    }
    for (Key key = 0; key < 5; ++key) {
      const float* const row = store.find(key, RowStore::hash(key));
      ASSERT_NE(row, nullptr);
      EXPECT_EQ(row[0], static_cast<float>(key));
      EXPECT_EQ(row[floats - 1], static_cast<float>(key));
    }
  }
}

TEST(RowStore, AWalkFromAPlaceThatIsNotThereMeetsNothing) {
  Arena arena;
  RowStore store(1, arena);
  for (const size_t rows : {0, 3}) {
    for (Key key = 0; key < rows; ++key) store.insert(key, RowStore::hash(key));
    for (const uint64_t far : {uint64_t{rows}, uint64_t{1} << 32, ~uint64_t{0} - 1, ~uint64_t{0}}) {
      uint64_t place = far;
      EXPECT_EQ(store.walk(place, 10, [](Key, const float*) { FAIL(); }), 0U) << far;
      EXPECT_EQ(place, far);
    }
  }
}

}  // namespace
}  // namespace argosy::ps

#include "argosy/ps/tier_index.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "argosy/base/rng.h"

namespace argosy::ps {
namespace {

/// The entry of a place on the disk.
TierIndex::Entry* cold_entry(TierIndex& index, uint64_t hash, uint64_t place) {
  return index.find(hash, [&](TierIndex::Entry entry) {
    return !TierIndex::is_hot(entry) && TierIndex::place(entry) == place;
  });
}

TEST(TierIndex, HoldsWhatAMapHolds) {
  constexpr uint64_t kSeed = 20261119;
  SCOPED_TRACE(kSeed);
  const RandomStream draws(kSeed);
  TierIndex index(1000, 256);
  std::map<uint64_t, uint64_t> places;  // by hash
  uint64_t drawn = 0;
  for (uint64_t round = 0; round < 40'000; ++round) {
    // Grows for a while, then shrinks, twice.
    const bool grows = round / 10'000 % 2 == 0;
    const uint64_t hash = mix(draws.below(drawn++, 4000));
    if (draws.below(drawn++, 4) == (grows ? 0 : 3)) {
      const auto found = places.find(hash);
      if (found == places.end()) continue;
      index.erase(hash, cold_entry(index, hash, found->second));
      places.erase(found);
    } else if (grows && !places.contains(hash)) {
      places[hash] = draws.below(drawn++, TierIndex::kPlaceMask);
      index.insert(hash, false, places[hash]);
    } else if (!grows) {
      const auto found = places.lower_bound(hash);
      if (found == places.end()) continue;
      index.erase(found->first, cold_entry(index, found->first, found->second));
      places.erase(found);
    }
    ASSERT_EQ(index.size(), places.size());
  }
  size_t entries = 0;
  for (size_t partition = 0; partition < index.partitions(); ++partition)
    entries += index.entries(partition).size();
  EXPECT_EQ(entries, places.size());
  for (const auto& [hash, place] : places) ASSERT_NE(cold_entry(index, hash, place), nullptr);
}

TEST(TierIndex, MovesARowBetweenMemoryAndDisk) {
  TierIndex index(100, 64);
  const uint64_t hash = mix(7);
  index.insert(hash, true, 5);
  TierIndex::Entry* const entry = index.find(hash, TierIndex::is_hot);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(TierIndex::place(*entry), 5U);
  TierIndex::move(*entry, false, TierIndex::kPlaceMask);
  EXPECT_EQ(index.find(hash, TierIndex::is_hot), nullptr);
  EXPECT_NE(cold_entry(index, hash, TierIndex::kPlaceMask), nullptr);
}

TEST(TierIndex, TakesTenBytesForARow) {
  constexpr size_t kRows = 1'000'000;
  TierIndex index(kRows, size_t{32} << 10);
  for (size_t row = 0; row < kRows; ++row) index.insert(mix(row), false, row);
  EXPECT_LT(static_cast<double>(index.bytes()) / kRows, 10.5);
}

}  // namespace
}  // namespace argosy::ps

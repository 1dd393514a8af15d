#include "argosy/ps/row_replay.h"

#include <gtest/gtest.h>

#include "argosy/base/rng.h"

namespace argosy::ps {
namespace {

constexpr size_t kDim = 7, kRowsOfPage = 20000;

/// Some keys of each page come again in later ones, with other images.
void add_pages(RowReplay& replay, size_t pages) {
  std::vector<std::byte> bytes(kRowsOfPage * (sizeof(Key) + kDim * sizeof(float)));
  for (size_t page = 0; page < pages; ++page) {
    auto* const keys = reinterpret_cast<Key*>(bytes.data());
    auto* const images = reinterpret_cast<float*>(bytes.data() + kRowsOfPage * sizeof(Key));
    for (size_t i = 0; i < kRowsOfPage; ++i) keys[i] = mix(page * kRowsOfPage / 2 + i);
    std::fill_n(images, kRowsOfPage * kDim, static_cast<float>(page + 1));
    replay.add(0, Section::rows, kRowsOfPage, bytes);
  }
  replay.finish();
}

TEST(RowReplay, TheLastImageOfEachRowCountsWithAnyNumberOfThreads) {
  constexpr size_t kPages = 70;  // more than are put without threads
  for (const size_t threads : {1U, 3U}) {
    Shard shard(place({}, {{.name = "rows", .dim = kDim, .rule = "sgd"}}, {0}, 1), 0, 1);
    {
      RowReplay replay(shard, threads);
      add_pages(replay, kPages);
    }
    EXPECT_EQ(shard.rows(), (kPages + 1) * kRowsOfPage / 2);
    const auto value = [&](size_t row) { return peek(shard.table(0), std::vector{mix(row)})[0]; };
    for (size_t half = 0; half <= kPages; ++half)
      for (const size_t row : {half * kRowsOfPage / 2, (half + 1) * kRowsOfPage / 2 - 1})
        EXPECT_EQ(value(row), static_cast<float>(std::min(half + 1, kPages))) << row;
  }
}

}  // namespace
}  // namespace argosy::ps

#include "argosy/data/batcher.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"

namespace argosy {
namespace {

std::vector<SlotSpec> slots() {
  return {{"a", SlotKind::ids, 1},
          {"b", SlotKind::ids, 1},
          {"many", SlotKind::ids, 0, EmptySlot::empty},
          {"dense", SlotKind::floats, 2},
          {"label", SlotKind::ids, 1}};
}

Columns some_columns() {
  Columns columns(slots());
  const auto add = [&](uint64_t a, uint64_t b, std::vector<uint64_t> many, float dense) {
    *columns.add_ids(0, 1) = a;
    *columns.add_ids(1, 1) = b;
    std::ranges::copy(many, columns.add_ids(2, many.size()));
    columns.add_floats(3, 2)[0] = dense;
    columns.add_floats(3, 0)[-1] = dense + 1;
    *columns.add_ids(4, 1) = 1;
    ASSERT_FALSE(columns.commit());
  };
  add(7, 9, {9, 9, 3}, 0.5F);
  add(9, 7, {}, 1.5F);
  add(~uint64_t{0}, 0, {7}, 2.5F);
  return columns;
}

std::vector<int32_t> integers(const Batch& batch, const std::string& name) {
  const auto values = batch.feeds.at(name).as<int32_t>();
  return {values.begin(), values.end()};
}

TEST(Batcher, NumbersEachKeyOnceInOrderOfUse) {
  Batcher batcher({.columns = {{"dense", {-1, 2}, DType::f32}, {"label", {-1, 1}, DType::f32}},
                   .indices = {{.index = "t.index", .slots = {"a", "b"}, .key_set = 0}},
                   .key_sets = 1},
                  slots());
  Batch batch;
  for (int repeat = 0; repeat < 3; ++repeat) {
    batcher.fill(some_columns(), batch);
    EXPECT_EQ(batch.size, 3U);
    EXPECT_EQ(batch.keys[0], (std::vector<Key>{7, 9, ~uint64_t{0}, 0}));
    EXPECT_EQ(integers(batch, "t.index"), (std::vector<int32_t>{0, 1, 1, 0, 2, 3}));
    EXPECT_EQ(batch.feeds.at("dense").shape(), (Shape{3, 2}));
    EXPECT_EQ(batch.feeds.at("dense").as<float>()[2], 1.5F);
    EXPECT_EQ(batch.feeds.at("label").as<float>()[0], 1.0F);
  }
}

TEST(Batcher, PoolsAnyNumberOfIdsAndLeavesOutThePadding) {
  Batcher batcher({.columns = {},
                   .indices = {{.index = "t.index",
                                .offsets = "t.offsets",
                                .slots = {"many", "a"},
                                .key_set = 0,
                                .padding = 9}},
                   .key_sets = 1},
                  slots());
  Batch batch;
  batcher.fill(some_columns(), batch);
  EXPECT_EQ(batch.keys[0], (std::vector<Key>{3, 7, ~uint64_t{0}}));
  EXPECT_EQ(integers(batch, "t.index"), (std::vector<int32_t>{-1, -1, 0, 1, -1, 1, 2}));
  EXPECT_EQ(integers(batch, "t.offsets"), (std::vector<int32_t>{0, 3, 4, 4, 5, 6, 7}));
}

TEST(Batcher, LookupsOfTheSameSlotsShareTheirIndex) {
  Batcher batcher({.columns = {},
                   .indices = {{.index = "t.index", .slots = {"a", "b"}, .key_set = 0},
                               {.index = "u.index", .slots = {"a", "b"}, .key_set = 0},
                               {.index = "v.index", .slots = {"b"}, .key_set = 1}},
                   .key_sets = 2},
                  slots());
  Batch batch;
  batcher.fill(some_columns(), batch);
  EXPECT_EQ(integers(batch, "t.index"), integers(batch, "u.index"));
  EXPECT_EQ(batch.feeds.at("t.index").data(), batch.feeds.at("u.index").data());
  EXPECT_EQ(batch.keys[1], (std::vector<Key>{9, 7, 0}));
}

TEST(Batcher, EqualsAPlainMapOnRandomIds) {
  const std::vector<SlotSpec> one = {{"x", SlotKind::ids, 1}};
  Batcher batcher({.columns = {}, .indices = {{.index = "x.index", .slots = {"x"}}}, .key_sets = 1},
                  one);
  Batch batch;
  const RandomStream random(3);
  for (uint64_t round = 0; round < 50; ++round) {
    Columns columns(one);
    const uint64_t rows = 1 + random.below(round, 3000);
    for (uint64_t i = 0; i < rows; ++i) {
      *columns.add_ids(0, 1) = random.below(round * 5000 + i, 1 + round * 40) << (round % 50);
      ASSERT_FALSE(columns.commit());
    }
    batcher.fill(columns, batch);
    std::map<Key, int32_t> expected;
    for (size_t i = 0; i < rows; ++i) {
      const auto number = static_cast<int32_t>(expected.size());
      const Key key = columns.ids(0)[i];
      const auto at = expected.emplace(key, number).first;
      ASSERT_EQ(batch.feeds.at("x.index").as<int32_t>()[i], at->second);
      ASSERT_EQ(batch.keys[0][static_cast<size_t>(at->second)], key);
    }
    ASSERT_EQ(batch.keys[0].size(), expected.size());
  }
}

std::string refused(const BatchLayout& layout) {
  try {
    Batcher(layout, slots());
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(Batcher, RefusesSlotsThatDoNotFit) {
  EXPECT_EQ(refused({.columns = {{"lable", {-1, 1}, DType::f32}}}),
            "the model wants an input from a slot 'lable', which the data does not have, did you "
            "mean label?");
  EXPECT_EQ(refused({.columns = {{"dense", {-1, 13}, DType::f32}}}),
            "input 'dense' takes 13 values per instance, the slot has 2");
  EXPECT_EQ(refused({.columns = {}, .indices = {{.index = "i", .slots = {"many"}}}, .key_sets = 1}),
            "slot 'many' has any number of ids per instance: its lookup needs a pooling");
  EXPECT_EQ(
      refused({.columns = {}, .indices = {{.index = "i", .slots = {"dense"}}}, .key_sets = 1}),
      "slot 'dense' holds floats, a lookup needs ids");
}

}  // namespace
}  // namespace argosy

#include "argosy/data/key_columns.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

template <class T>
Tensor tensor(const Shape& shape, DType type, const std::vector<T>& values) {
  Tensor result(shape, type);
  std::ranges::copy(values, result.as<T>().begin());
  return result;
}

/// Three instances of two slots; keys 7 and 9, and padding.
Batch batch() {
  Batch batch;
  batch.size = 3;
  batch.keys = {{7, 9}};
  batch.feeds["index"] = tensor<int32_t>({3, 2}, DType::i32, {0, 1, 0, 0, -1, 1});
  batch.feeds["show"] = tensor<float>({3, 1}, DType::f32, {1, 2, 4});
  batch.feeds["click"] = tensor<int64_t>({3, 1}, DType::i64, {0, 1, 1});
  return batch;
}

BatchLayout layout(KeyColumnsFeed columns) {
  return {.columns = {},
          .indices = {{.index = "index", .slots = {"a", "b"}, .key_set = 0},
                      {.index = "index", .slots = {"a", "b"}, .key_set = 0}},
          .key_sets = 1,
          .key_columns = {std::move(columns)}};
}

TEST(KeyColumns, CountOccurrencesNotBatchesAndLeavePaddingOut) {
  Batch filled = batch();
  fill_key_columns(layout({.counts = true}), filled);
  ASSERT_EQ(filled.key_columns.size(), 1U);
  EXPECT_EQ(filled.key_columns[0].counts, (std::vector<uint32_t>{3, 2}));  // looked up twice: once
  EXPECT_TRUE(filled.key_columns[0].shows.empty());
}

TEST(KeyColumns, AddUpTheInputsOfTheInstancesThatAKeyOccursIn) {
  Batch filled = batch();
  fill_key_columns(layout({.counts = true, .show = "show", .click = "click"}), filled);
  EXPECT_EQ(filled.key_columns[0].shows, (std::vector<float>{1 + 2 + 2, 1 + 4}));
  EXPECT_EQ(filled.key_columns[0].clicks, (std::vector<float>{0 + 1 + 1, 0 + 1}));
}

TEST(KeyColumns, OfIdsInBags) {
  Batch filled = batch();
  filled.feeds["index"] = tensor<int32_t>({4}, DType::i32, {0, 0, 1, -1});
  filled.feeds["offsets"] = tensor<int32_t>({4}, DType::i32, {0, 2, 2, 4});
  BatchLayout bags = layout({.counts = true, .show = "show", .click = "click"});
  bags.indices = {{.index = "index", .offsets = "offsets", .slots = {"a"}, .key_set = 0}};
  fill_key_columns(bags, filled);
  EXPECT_EQ(filled.key_columns[0].counts, (std::vector<uint32_t>{2, 1}));
  EXPECT_EQ(filled.key_columns[0].shows, (std::vector<float>{2, 4}));
}

TEST(KeyColumns, ThatNobodyAsksForAreNotThere) {
  Batch filled = batch();
  filled.key_columns.resize(1);
  BatchLayout plain = layout({});
  plain.key_columns.clear();
  fill_key_columns(plain, filled);
  EXPECT_TRUE(filled.key_columns.empty());
}

TEST(KeyColumns, NameAnInputThatIsMissingOrDoesNotFit) {
  Batch missing = batch();
  missing.feeds.erase("show");
  const BatchLayout wanted = layout({.counts = true, .show = "show", .click = "click"});
  EXPECT_EQ(message_of<ConfigError>([&] { fill_key_columns(wanted, missing); }),
            "input 'show' is missing, which the entry of a table counts by");
  Batch wide = batch();
  wide.feeds["click"] = tensor<float>({3, 2}, DType::f32, {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(message_of<ConfigError>([&] { fill_key_columns(wanted, wide); }),
            "input 'click' has 6 values for 3 instances, expected one for each, as the entry of a "
            "table counts by it");
}

}  // namespace
}  // namespace argosy

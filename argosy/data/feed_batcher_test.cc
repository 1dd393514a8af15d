#include "argosy/data/feed_batcher.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

/// Two slots looked up side by side, and one that is pooled.
BatchLayout layout() {
  return {.columns = {{.input = "dense", .shape = {-1, 2}}},
          .indices = {{.index = "table.index", .slots = {"a", "b"}, .key_set = 0},
                      {.index = "words.index",
                       .offsets = "words.offsets",
                       .slots = {"words"},
                       .key_set = 1}},
          .key_sets = 2};
}

FedByName feeds() {
  return {{"a", {.values = Tensor::of<int64_t>({2, 1}, {7, 8})}},
          {"b", {.values = Tensor::of<int64_t>({2}, {8, 9})}},
          {"words", {.values = Tensor::of<int64_t>({3}, {5, 5, 6}), .offsets = {0, 1, 3}}},
          {"dense", {.values = Tensor::of<float>({2, 2}, {1, 2, 3, 4})}}};
}

TEST(FeedBatcher, NumbersIdsAndLeavesArraysAlone) {
  FeedBatcher batcher(layout());
  Batch batch;
  batcher.fill(feeds(), batch);
  EXPECT_EQ(batch.size, 2u);
  EXPECT_EQ(batch.keys[0].size(), 3u);
  EXPECT_EQ(batch.keys[1], (std::vector<Key>{5, 6}));
  const auto index = batch.feeds.at("table.index").as<int32_t>();
  const auto key = [&](size_t i) { return batch.keys[0][static_cast<size_t>(index[i])]; };
  EXPECT_EQ((std::vector{key(0), key(1), key(2), key(3)}), (std::vector<Key>{7, 8, 8, 9}));
  EXPECT_TRUE(same_bits(batch.feeds.at("words.offsets"), Tensor::of<int32_t>({3}, {0, 1, 3})));
  EXPECT_TRUE(same_bits(batch.feeds.at("dense"), feeds().at("dense").values));
}

TEST(FeedBatcher, ForgetsWhatWasFedBefore) {
  FeedBatcher batcher(layout());
  Batch batch;
  batcher.fill(feeds(), batch);
  FedByName without = feeds();
  without.erase("dense");
  batcher.fill(without, batch);
  EXPECT_FALSE(batch.feeds.contains("dense"));
}

TEST(FeedBatcher, TakesBatchesOfAnySize) {
  FeedBatcher batcher(layout());
  Batch batch;
  batcher.fill(feeds(), batch);
  const Fed none{.values = Tensor({0, 1}, DType::i64)};
  batcher.fill({{"a", none}, {"b", none}, {"words", {.values = none.values, .offsets = {0}}}},
               batch);
  EXPECT_EQ(batch.size, 0u);
}

TEST(FeedBatcher, SaysWhatDoesNotFit) {
  FeedBatcher batcher(layout(), {{"b", 9}});
  Batch batch;
  const auto refused = [&](const std::string& name, Fed fed) {
    FedByName wrong = feeds();
    wrong["b"].values = Tensor::of<int64_t>({2}, {1, 2});
    wrong[name] = std::move(fed);
    return message_of<Error>([&] { batcher.fill(wrong, batch); });
  };
  EXPECT_EQ(message_of<Error>([&] { batcher.fill(feeds(), batch); }).find("feed, instance 1: "),
            0u);
  EXPECT_EQ(refused("a", {.values = Tensor::of<float>({2, 1}, {1, 2})}),
            "feed 'a': ids are int64, got f32[2,1]");
  EXPECT_EQ(refused("b", {.values = Tensor::of<int64_t>({3}, {1, 2, 3})}),
            "feed: 'b' has 3 instances, 'a' has 2");
  EXPECT_EQ(refused("words", {.values = Tensor::of<int64_t>({3}, {1, 2, 3}), .offsets = {0, 2, 4}}),
            "feed 'words': the offsets of its instances end at 4, it has 3 values");
  EXPECT_EQ(refused("dense", {.values = Tensor::of<float>({2}, {1, 2}), .offsets = {0, 1, 2}}),
            "feed 'dense': it has offsets, and is no variable that a table is looked up by");
}

}  // namespace
}  // namespace argosy

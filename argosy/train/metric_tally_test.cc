#include "argosy/train/metric_tally.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

constexpr VarId kLoss{0}, kError{1}, kPrediction{2}, kLabel{3}, kUser{4};

Measures measures() {
  return {.names = {"loss", "error", "auc", "gauc", "copc"},
          .means = {kLoss, kError},
          .scored = {{"auc", kPrediction, kLabel, {}},
                     {"gauc", kPrediction, kLabel, kUser},
                     {"copc", kPrediction, kLabel, {}}}};
}

/// The variables of one batch. Means are whole numbers and predictions multiples of 1/64, so sums
/// are exact in any order.
struct Batch {
  size_t size;
  std::vector<Tensor> values;

  void add_to(MetricTally& metrics) const {
    metrics.add(size, [this](VarId id) -> const Tensor& { return values[id.index()]; });
  }
};

Batch draw(uint64_t seed, uint64_t number) {
  const RandomStream random(seed, number);
  const size_t n = 1 + random.below(0, 50);
  const Shape shape{static_cast<int64_t>(n)};
  std::vector<float> predictions;
  std::vector<int64_t> labels, users;
  for (size_t i = 1; i <= n; ++i) {
    predictions.push_back(static_cast<float>(random.below(4 * i, 65)) / 64);
    labels.push_back(static_cast<int64_t>(random.below(4 * i + 1, 2)));
    users.push_back(static_cast<int64_t>(random.below(4 * i + 2, 9)));
  }
  return {n,
          {Tensor::scalar(static_cast<float>(random.below(1, 1000))),
           Tensor::of<double>({1}, {static_cast<double>(random.below(2, 1000))}),
           Tensor::of(shape, std::span<const float>(predictions)),
           Tensor::of(shape, std::span<const int64_t>(labels)),
           Tensor::of(shape, std::span<const int64_t>(users))}};
}

MetricTally seen(const Measures& what, uint64_t seed, uint64_t first, uint64_t end) {
  MetricTally metrics(what);
  for (uint64_t number = first; number < end; ++number) draw(seed, number).add_to(metrics);
  return metrics;
}

void expect_same(const std::vector<Metric>& a, const std::vector<Metric>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(std::bit_cast<uint64_t>(a[i].value), std::bit_cast<uint64_t>(b[i].value))
        << a[i].name << ": " << a[i].value << " and " << b[i].value;
  }
}

TEST(MetricTally, MergedAreThoseOfOneThatSawEverything) {
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MetricTally all = seen(measures(), seed, 0, 30), merged = seen(measures(), seed, 0, 7);
    merged.merge(seen(measures(), seed, 7, 8).bytes());
    merged.merge(seen(measures(), seed, 8, 30).bytes());
    EXPECT_EQ(merged.instances(), all.instances());
    expect_same(merged.totals(), all.totals());
    expect_same(merged.current(), all.current());
    EXPECT_EQ(merged.bytes().size(), all.bytes().size());
  }
}

TEST(MetricTally, ThatSawNothingChangeNothing) {
  MetricTally metrics = seen(measures(), 4, 0, 5), finished = seen(measures(), 5, 0, 5);
  finished.reset();
  const auto before = metrics.bytes();
  metrics.merge(MetricTally(measures()).bytes());
  metrics.merge(finished.bytes());
  EXPECT_EQ(metrics.bytes(), before);
  EXPECT_EQ(finished.instances(), 0U);

  MetricTally empty(measures());
  empty.merge(before);
  EXPECT_EQ(empty.bytes(), before);
}

TEST(MetricTally, OfOtherMeasuresAreRefused) {
  const auto message = [](const Measures& other) {
    MetricTally metrics = seen(measures(), 6, 0, 3);
    const auto before = metrics.bytes(), theirs = MetricTally(other).bytes();
    std::string text = message_of<DataError>([&] { metrics.merge(theirs); });
    EXPECT_EQ(metrics.bytes(), before) << text;
    return text;
  };
  Measures other = measures();
  EXPECT_EQ(message(other), "nothing was thrown");
  other.names[1] = "accuracy";
  EXPECT_EQ(message(other), "metrics to merge: another metric in the place of error");
  other = measures();
  other.scored[0].meter = "auc(buckets=64)";
  EXPECT_EQ(message(other), "metrics to merge: of a meter auc with the setting 64, expected 4096");
  other.scored[0].meter = "mae";
  EXPECT_EQ(message(other), "metrics to merge: of another kind of meter than auc");
  other = measures();
  other.scored.erase(other.scored.begin());
  other.means.push_back(kError);
  EXPECT_EQ(message(other), "metrics to merge: 3 of them are means over batches, expected 2");
  EXPECT_EQ(message({.names = {"loss"}, .means = {kLoss}, .scored = {}}),
            "metrics to merge: 1 of them, expected 5");
}

TEST(MetricTally, DamagedAreRefusedWhole) {
  Measures few = measures();
  few.scored[0].meter = "auc(buckets=8)";
  MetricTally metrics = seen(few, 7, 0, 2);
  const auto before = metrics.bytes();
  auto bytes = seen(few, 8, 0, 2).bytes();
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_THROW(metrics.merge(std::span(bytes).first(n)), DataError) << n << " bytes";
  bytes.push_back({});
  EXPECT_EQ(message_of<DataError>([&] { metrics.merge(bytes); }),
            "metrics to merge: 1 bytes too many");
  EXPECT_EQ(metrics.bytes(), before);
}

}  // namespace
}  // namespace argosy

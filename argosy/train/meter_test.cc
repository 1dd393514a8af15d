#include "argosy/train/meter.h"
#include "argosy/base/test_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"
#include "argosy/base/rng.h"

namespace argosy {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Instances that a meter can be given whole or in parts.
struct Instances {
  std::vector<float> predictions, labels;
  std::vector<uint64_t> groups;

  Observations part(size_t first, size_t n) const {
    return {std::span(predictions).subspan(first, n), std::span(labels).subspan(first, n),
            std::span(groups).subspan(first, n)};
  }
  Observations all() const { return part(0, labels.size()); }
};

/// Predictions on a grid of `steps`, so that there are ties; some labels are below 0.
Instances draw(uint64_t seed, size_t n, uint64_t steps) {
  const RandomStream random(seed);
  Instances drawn;
  for (size_t i = 0; i < n; ++i) {
    const auto step = static_cast<float>(random.below(5 * i, steps + 1));
    const float p = step / static_cast<float>(steps);
    drawn.predictions.push_back(p);
    const bool click = random.uniform(5 * i + 1) < 0.2 + 0.5 * p;
    drawn.labels.push_back(random.below(5 * i + 2, 10) == 0 ? -1.0F : (click ? 1.0F : 0.0F));
    drawn.groups.push_back(random.below(5 * i + 3, 40) * random.below(5 * i + 4, 40));
  }
  return drawn;
}

/// By comparing every click with every other instance; ties count half.
template <class Prediction>
double pairwise_auc(const std::vector<Prediction>& predictions, const std::vector<float>& labels) {
  uint64_t halves = 0, pairs = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] <= 0) continue;
    for (size_t j = 0; j < labels.size(); ++j) {
      if (labels[j] != 0) continue;
      ++pairs;
      halves += predictions[i] > predictions[j] ? 2 : (predictions[i] == predictions[j] ? 1 : 0);
    }
  }
  return static_cast<double>(halves) / (2.0 * static_cast<double>(pairs));
}

double value_of(std::string_view spec, const Observations& batch) {
  const auto meter = make_meter(spec);
  meter->add(batch);
  return meter->value();
}

double value_of(std::string_view spec, const std::vector<float>& predictions,
                const std::vector<float>& labels) {
  return value_of(spec, Observations{predictions, labels});
}

TEST(Auc, EqualsComparingAllPairsOfPredictionsRoundedToBuckets) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    for (const size_t buckets : {2, 17, 256, 4096}) {
      const Instances drawn = draw(seed, 700, 1000);
      std::vector<uint32_t> rounded;
      for (const float p : drawn.predictions)
        rounded.push_back(static_cast<uint32_t>(p * static_cast<float>(buckets - 1)));
      const std::string spec = "auc(buckets=" + std::to_string(buckets) + ")";
      EXPECT_DOUBLE_EQ(value_of(spec, drawn.all()), pairwise_auc(rounded, drawn.labels))
          << spec << ", seed " << seed;
    }
  }
}

TEST(Auc, IsExactWhereNoTwoPredictionsShareABucket) {
  const Instances drawn = draw(9, 900, 100);  // a grid much coarser than 4096
  EXPECT_DOUBLE_EQ(value_of("auc", drawn.all()), pairwise_auc(drawn.predictions, drawn.labels));
}

TEST(Auc, HasTheValuesEverybodyKnows) {
  EXPECT_EQ(value_of("auc", {0.1F, 0.4F, 0.35F, 0.8F}, {0, 0, 1, 1}), 0.75);
  EXPECT_EQ(value_of("auc", {0.0F, 1.0F}, {0, 1}), 1.0);
  EXPECT_EQ(value_of("auc", {1.0F, 0.0F}, {0, 1}), 0.0);
  EXPECT_EQ(value_of("auc", {0.5F, 0.5F, 0.5F}, {0, 1, 0}), 0.5);
}

TEST(Auc, TellsNeighbouringBucketsApartButNotWhatIsWithinOne) {
  EXPECT_EQ(value_of("auc(11)", {0.31F, 0.39F}, {0, 1}), 0.5);
  EXPECT_EQ(value_of("auc(11)", {0.31F, 0.41F}, {0, 1}), 1.0);
}

TEST(Auc, IsNotANumberWhileAClassIsAbsent) {
  const auto meter = make_meter("auc");
  EXPECT_TRUE(std::isnan(meter->value()));
  const std::vector<float> predictions = {0.1F, 0.9F, 0.5F};
  meter->add({predictions, std::vector<float>{1, 1, -1}});
  EXPECT_TRUE(std::isnan(meter->value()));
  meter->add({predictions, std::vector<float>{0, 0, -1}});
  EXPECT_EQ(meter->value(), 0.5);
  meter->reset();
  EXPECT_TRUE(std::isnan(meter->value()));
}

TEST(BatchAuc, SeesTheLastBatchesOnly) {
  const Instances drawn = draw(7, 600, 300);
  const auto window = make_meter("batch_auc(steps=3)");
  for (size_t first = 0; first < 600; first += 50) {
    window->add(drawn.part(first, 50));
    const size_t from = first < 100 ? 0 : first - 100;
    EXPECT_EQ(window->value(), value_of("auc", drawn.part(from, first + 50 - from))) << first;
  }
  window->reset();
  EXPECT_TRUE(std::isnan(window->value()));
}

TEST(BatchAuc, AnEmptyBatchIsAStepToo) {
  const auto window = make_meter("batch_auc(2)");
  window->add({std::vector<float>{0.1F, 0.9F}, std::vector<float>{0, 1}});
  window->add({});
  EXPECT_EQ(window->value(), 1.0);
  window->add({});
  EXPECT_TRUE(std::isnan(window->value()));
}

TEST(BatchAuc, MergedWindowsSlideTogether) {
  const Instances a = draw(11, 300, 200), b = draw(12, 300, 200);
  const auto mine = make_meter("batch_auc(steps=2)"), theirs = make_meter("batch_auc(steps=2)");
  for (size_t first = 0; first < 300; first += 100) {
    mine->add(a.part(first, 100));
    theirs->add(b.part(first, 100));
  }
  mine->merge(*theirs);
  const auto expected = make_meter("auc");
  expected->add(a.part(100, 200));
  expected->add(b.part(100, 200));
  EXPECT_EQ(mine->value(), expected->value());

  mine->add(a.part(0, 10));  // the older half of both windows falls out
  expected->reset();
  for (const Observations& left : {a.part(200, 100), b.part(200, 100), a.part(0, 10)})
    expected->add(left);
  EXPECT_EQ(mine->value(), expected->value());
}

TEST(Gauc, EqualsTheWeightedMeanOfEachGroupsPairs) {
  for (const uint64_t seed : {1, 2, 3}) {
    const Instances drawn = draw(seed, 2000, 50);
    std::map<uint64_t, std::pair<std::vector<float>, std::vector<float>>> groups;
    for (size_t i = 0; i < drawn.labels.size(); ++i) {
      if (drawn.labels[i] < 0) continue;
      groups[drawn.groups[i]].first.push_back(drawn.predictions[i]);
      groups[drawn.groups[i]].second.push_back(drawn.labels[i]);
    }
    double sum = 0, weights = 0;
    size_t left_out = 0;
    for (const auto& [group, rows] : groups) {
      const double auc = pairwise_auc(rows.first, rows.second);
      if (std::isnan(auc)) {
        ++left_out;
        continue;
      }
      sum += auc * static_cast<double>(rows.second.size());
      weights += static_cast<double>(rows.second.size());
    }
    ASSERT_GT(left_out, 0U) << "seed " << seed;
    EXPECT_NEAR(value_of("gauc", drawn.all()), sum / weights, 1e-14) << "seed " << seed;
  }
}

TEST(Gauc, IgnoresTheOrderBetweenGroups) {
  // Group 8 is predicted higher as a whole, wrongly; within the groups the order is right.
  const std::vector<float> predictions = {0.1F, 0.2F, 0.8F, 0.9F}, labels = {1, 1, 0, 1};
  const std::vector<uint64_t> groups = {7, 7, 8, 8};
  EXPECT_EQ(value_of("gauc", {predictions, labels, groups}), 1.0);
  EXPECT_LT(value_of("auc", {predictions, labels, groups}), 1.0);
}

TEST(Gauc, AsksForGroups) {
  const auto meter = make_meter("gauc");
  EXPECT_TRUE(meter->needs_groups());
  const std::vector<float> two = {0, 1};
  EXPECT_EQ(message_of<ConfigError>([&] {
              meter->add({two, two});
            }),
            "gauc needs the group of each instance: got 0 groups for 2 instances");
  EXPECT_TRUE(std::isnan(meter->value()));
}

TEST(LogLoss, IsTheMeanOfTheLogarithms) {
  EXPECT_NEAR(value_of("logloss", {0.25F, 0.75F, 0.5F}, {1, 0, 1}),
              (2 * std::log(4.0) + std::log(2.0)) / 3, 1e-15);
  EXPECT_NEAR(value_of("logloss", {0.0F, 1.0F}, {1, 0}), -std::log(1e-7), 1e-8);
  EXPECT_NEAR(value_of("logloss(epsilon=0.01)", {0.0F}, {1}), -std::log(0.01), 1e-12);
}

TEST(MaeAndRmse, CountEveryLabel) {
  EXPECT_DOUBLE_EQ(value_of("mae", {1.0F, -2.0F, 0.5F}, {0, -4, 0.5F}), 1.0);
  EXPECT_DOUBLE_EQ(value_of("rmse", {1.0F, -2.0F, 0.5F}, {0, -4, 0.5F}), std::sqrt(5.0 / 3.0));
  EXPECT_TRUE(std::isnan(make_meter("rmse")->value()));
}

TEST(Ctr, CountsAndPredictsClicks) {
  const std::vector<float> predictions = {0.25F, 0.5F, 0.75F, 1.0F}, labels = {0, 1, -1, 1};
  EXPECT_DOUBLE_EQ(value_of("actual_ctr", predictions, labels), 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(value_of("predicted_ctr", predictions, labels), 1.75 / 3.0);
  EXPECT_DOUBLE_EQ(value_of("copc", predictions, labels), 2.0 / 1.75);
  EXPECT_TRUE(std::isnan(value_of("copc", {0.0F}, {1})));
}

TEST(Decisions, TakeTheThresholdItselfAsAClick) {
  const std::vector<float> predictions = {0.5F, 0.4F, 0.6F, 0.1F, 0.9F, 0.2F};
  const std::vector<float> labels = {1, 1, 0, 0, 1, -1};
  EXPECT_DOUBLE_EQ(value_of("accuracy", predictions, labels), 3.0 / 5.0);
  EXPECT_DOUBLE_EQ(value_of("precision", predictions, labels), 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(value_of("recall", predictions, labels), 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(value_of("recall(0.4)", predictions, labels), 1.0);
  EXPECT_DOUBLE_EQ(value_of("precision(threshold=0.8)", predictions, labels), 1.0);
  EXPECT_TRUE(std::isnan(value_of("precision(threshold=1)", predictions, labels)));
  EXPECT_TRUE(std::isnan(value_of("recall", {0.9F}, {0})));
}

TEST(AllMeters, GiveTheSameInPartsAsWhole) {
  constexpr size_t kParts = 5, kPart = 300;
  const Instances drawn = draw(21, kParts * kPart, 777);
  for (const std::string& name : meter_names()) {
    const auto whole = make_meter(name), joined = make_meter(name);
    for (size_t part = 0; part < kParts; ++part) {
      const auto one = make_meter(name);
      one->add(drawn.part(part * kPart, kPart));
      joined->merge(*one);
    }
    whole->add(drawn.all());
    ASSERT_TRUE(std::isfinite(whole->value())) << name;
    // Counts give the same bits; sums of fractions are added in another order.
    const bool fractions = name == "logloss" || name == "mae" || name == "rmse" ||
                           name == "predicted_ctr" || name == "copc";
    EXPECT_NEAR(joined->value(), whole->value(), fractions ? 1e-13 : 0) << name;
  }
}

TEST(AllMeters, StartAgainAfterReset) {
  const Instances first = draw(31, 200, 99), second = draw(32, 200, 99);
  for (const std::string& name : meter_names()) {
    const auto meter = make_meter(name);
    EXPECT_TRUE(std::isnan(meter->value())) << name;
    meter->add(first.all());
    meter->reset();
    EXPECT_TRUE(std::isnan(meter->value())) << name;
    meter->add(second.all());
    EXPECT_EQ(meter->value(), value_of(name, second.all())) << name;
  }
}

TEST(AllMeters, CountNothingOfABatchTheyRefuse) {
  const Instances good = draw(41, 200, 99);
  for (const std::string& name : meter_names()) {
    const auto meter = make_meter(name);
    meter->add(good.all());
    const double before = meter->value();
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      Instances batch = draw(42, 100, 9);
      batch.predictions[77] = bad;
      const std::string message = message_of<DataError>([&] { meter->add(batch.all()); });
      EXPECT_TRUE(message.starts_with(name + ": the prediction at position 77 of the batch is "))
          << message;
      std::swap(batch.predictions[77], batch.labels[77]);
      batch.predictions[77] = 0;
      EXPECT_TRUE(message_of<DataError>([&] {
                    meter->add(batch.all());
                  }).starts_with(name + ": the label at position 77 of the batch is "));
      batch.labels.pop_back();
      EXPECT_THROW(meter->add({batch.predictions, batch.labels, batch.groups}), DataError) << name;
    }
    EXPECT_EQ(meter->value(), before) << name;
  }
}

TEST(AllMeters, RefuseToMergeOtherKinds) {
  for (const std::string& name : meter_names())
    for (const std::string& other : meter_names()) {
      if (name == other) continue;
      EXPECT_THROW(make_meter(name)->merge(*make_meter(other)), ConfigError) << name << other;
    }
  EXPECT_EQ(message_of<ConfigError>([] { make_meter("auc")->merge(*make_meter("mae")); }),
            "only a meter of the same kind can be merged into auc");
}

/// Few buckets and steps where a meter has them, so that its bytes are few and its window slides.
std::string small_spec(const std::string& name) {
  if (name == "auc") return "auc(buckets=16)";
  if (name == "batch_auc") return "batch_auc(steps=3, buckets=16)";
  return name;
}

std::vector<std::byte> saved(const Meter& meter) {
  ByteBuffer out;
  meter.save(out);
  return {out.bytes().begin(), out.bytes().end()};
}

/// Into a meter that has seen something else before.
std::unique_ptr<Meter> loaded(const std::string& spec, std::span<const std::byte> bytes) {
  auto meter = make_meter(spec);
  meter->add(draw(99, 30, 7).all());
  ByteSource in(bytes, "a saved meter");
  meter->load(in);
  EXPECT_EQ(in.left(), 0U) << spec;
  return meter;
}

uint64_t bits_of(const Meter& meter) { return std::bit_cast<uint64_t>(meter.value()); }

TEST(SavedMeters, MergeToTheSameBitsAsTheOriginals) {
  constexpr size_t kMeters = 3, kInstances = 1200;
  for (const uint64_t seed : {51, 52, 53}) {
    const Instances drawn = draw(seed, kInstances, 777);
    const RandomStream random(seed, 1);
    for (const MeterPlugin& plugin : builtin_meters()) {
      const std::string where = plugin.name + ", seed " + std::to_string(seed);
      std::vector<std::unique_ptr<Meter>> originals;
      for (size_t i = 0; i < kMeters; ++i) originals.push_back(make_meter(plugin.name));
      const auto whole = make_meter(plugin.name);
      for (size_t first = 0, batch = 0; first < kInstances; ++batch) {
        const size_t n = std::min<size_t>(random.below(2 * batch, 90), kInstances - first);
        originals[random.below(2 * batch + 1, kMeters)]->add(drawn.part(first, n));
        whole->add(drawn.part(first, n));
        first += n;
      }
      const auto direct = make_meter(plugin.name), by_bytes = make_meter(plugin.name);
      for (const auto& original : originals) {
        const auto copy = loaded(plugin.name, saved(*original));
        EXPECT_EQ(saved(*copy), saved(*original)) << where;
        by_bytes->merge(*copy);
        direct->merge(*original);
      }
      ASSERT_TRUE(std::isfinite(direct->value())) << where;
      EXPECT_EQ(bits_of(*by_bytes), bits_of(*direct)) << where;
      if (plugin.name == "auc" || plugin.name == "gauc") {
        EXPECT_EQ(bits_of(*by_bytes), bits_of(*whole)) << where;
      }
    }
  }
}

TEST(SavedMeters, GoOnAsTheOriginalsDo) {
  const Instances drawn = draw(61, 500, 99);
  for (const MeterPlugin& plugin : builtin_meters()) {
    const std::string spec = small_spec(plugin.name);
    const auto original = make_meter(spec);
    EXPECT_EQ(saved(*loaded(spec, saved(*original))), saved(*original)) << "nothing seen, " << spec;
    for (size_t first = 0; first < 250; first += 50) original->add(drawn.part(first, 50));
    const auto copy = loaded(spec, saved(*original));
    for (size_t first = 250; first < 500; first += 50) {
      original->add(drawn.part(first, 50));
      copy->add(drawn.part(first, 50));
      EXPECT_EQ(bits_of(*copy), bits_of(*original)) << spec << " at " << first;
    }
  }
}

TEST(SavedMeters, AreRefusedByOtherKindsAndSettings) {
  const auto message = [](const char* from, const char* into) {
    const auto meter = make_meter(into);
    const auto bytes = saved(*make_meter(from));
    ByteSource in(bytes, "worker 1");
    return message_of<DataError>([&] { meter->load(in); });
  };
  EXPECT_EQ(message("mae", "auc"), "worker 1: of another kind of meter than auc");
  EXPECT_EQ(message("auc(100)", "auc"),
            "worker 1: of a meter auc with the setting 100, expected 4096");
  EXPECT_EQ(message("batch_auc(steps=3)", "batch_auc"),
            "worker 1: of a meter batch_auc with the setting 3, expected 20");
  EXPECT_EQ(message("recall(0.25)", "recall"),
            "worker 1: of a meter recall with the setting 0.25, expected 0.5");
  for (const std::string& name : meter_names())
    for (const std::string& other : meter_names())
      EXPECT_EQ(message(name.c_str(), other.c_str()) == "nothing was thrown", name == other)
          << name << " into " << other;
}

/// Damaged bytes must either be refused, leaving the meter unchanged, or give a usable meter.
void expect_unharmed(const std::string& spec, std::span<const std::byte> bytes,
                     const std::string& damage) {
  const Instances before = draw(71, 40, 9);
  const auto meter = make_meter(spec), other = make_meter(spec);
  meter->add(before.all());
  other->add(before.all());
  const auto untouched = saved(*meter);
  ByteSource in(bytes, "a damaged meter");
  try {
    meter->load(in);
  } catch (const DataError&) {
    EXPECT_EQ(saved(*meter), untouched) << spec << damage;
    return;
  }
  EXPECT_FALSE(std::isinf(meter->value())) << spec << damage;
  other->merge(*meter);
  other->add(before.all());
  EXPECT_TRUE(std::isfinite(other->value())) << spec << damage;
}

TEST(SavedMeters, AreRefusedOrHarmlessWhenDamaged) {
  const Instances drawn = draw(72, 40, 99);
  for (const MeterPlugin& plugin : builtin_meters()) {
    const std::string spec = small_spec(plugin.name);
    const auto meter = make_meter(spec);
    for (size_t first = 0; first < 40; first += 10) meter->add(drawn.part(first, 10));
    auto bytes = saved(*meter);
    for (size_t n = 0; n < bytes.size(); ++n) {
      const auto part = std::span<const std::byte>(bytes).first(n);
      ByteSource in(part, "a short meter");
      EXPECT_THROW(make_meter(spec)->load(in), DataError) << spec << ", " << n << " bytes";
      expect_unharmed(spec, part, " cut at " + std::to_string(n));
    }
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      const auto flip = static_cast<std::byte>(1U << bit % 8);
      bytes[bit / 8] ^= flip;
      expect_unharmed(spec, bytes, " with bit " + std::to_string(bit) + " wrong");
      bytes[bit / 8] ^= flip;
    }
  }
}

TEST(SavedMeters, AreRefusedWithSumsAndCountsThatCannotBe) {
  const auto message = [](const std::string& spec, size_t from_end, auto value) {
    const auto meter = make_meter(spec);
    auto bytes = saved(*meter);
    std::memcpy(bytes.data() + bytes.size() - from_end, &value, sizeof(value));
    ByteSource in(bytes, "worker 1");
    return message_of<DataError>([&] { meter->load(in); });
  };
  EXPECT_EQ(message("mae", 16, -1.0),
            "worker 1: the sums of a meter mae are -1 and 0, expected finite numbers from 0 on");
  EXPECT_EQ(message("mae", 8, std::numeric_limits<double>::infinity()),
            "worker 1: the sums of a meter mae are 0 and inf, expected finite numbers from 0 on");
  EXPECT_EQ(message("auc(2)", 8, int64_t{-1}),
            "worker 1: a bucket of 18446744073709551615 instances besides 0 others, expected at "
            "most 2^53 in all");
  EXPECT_EQ(message("gauc", 8, uint64_t{1} << 61),
            "worker 1: 2305843009213693952 values of 16 bytes announced, 0 bytes left");
}

TEST(MeterSettings, MustAgreeToMerge) {
  const std::pair<const char*, const char*> different[] = {
      {"auc", "auc(buckets=100)"},
      {"batch_auc", "batch_auc(steps=3)"},
      {"batch_auc", "batch_auc(buckets=3)"},
      {"logloss", "logloss(epsilon=1e-5)"},
      {"accuracy", "accuracy(0.4)"},
      {"precision", "precision(0.4)"},
      {"recall", "recall(0.4)"},
  };
  for (const auto& [a, b] : different)
    EXPECT_THROW(make_meter(a)->merge(*make_meter(b)), ConfigError) << b;
  EXPECT_NO_THROW(make_meter("auc")->merge(*make_meter("auc(buckets=4096)")));
}

TEST(MeterSettings, AreRefusedWithTheirNames) {
  const std::pair<const char*, const char*> cases[] = {
      {"aucs", "'aucs': no meter 'aucs', did you mean auc?"},
      {"auc(bucket=9)",
       "'auc(bucket=9)': meter auc has no argument 'bucket', did you mean buckets?"},
      {"auc(1)", "'auc(1)': buckets is 1, expected a whole number from 2 to 16777216"},
      {"auc(buckets=2.5)",
       "'auc(buckets=2.5)': buckets is 2.5, expected a whole number from 2 to 16777216"},
      {"batch_auc(steps=0)",
       "'batch_auc(steps=0)': steps is 0, expected a whole number from 1 to 1000000"},
      {"recall(1.5)", "'recall(1.5)': threshold is 1.5, expected a number from 0 to 1"},
      {"logloss(0)", "'logloss(0)': epsilon is 0, expected a number from 1e-15 to 0.1"},
      {"mae(1)", "'mae(1)': meter mae takes 0 values without a name, got 1"},
  };
  for (const auto& [spec, message] : cases)
    EXPECT_EQ(message_of<ConfigError>([spec = spec] { make_meter(spec); }), message);
}

TEST(Probabilities, AreAskedForWhereTheyAreNeeded) {
  const std::vector<float> predictions = {0.5F, 1.5F}, labels = {0, 1};
  const std::vector<uint64_t> groups = {1, 1};
  for (const std::string& name : meter_names()) {
    const auto meter = make_meter(name);
    const bool any_number = name == "mae" || name == "rmse" || name == "gauc";
    EXPECT_EQ(
        message_of<DataError>([&] {
          meter->add({predictions, labels, groups});
        }),
        any_number
            ? "nothing was thrown"
            : name + ": the prediction at position 1 of the batch is 1.5, expected a probability");
  }
}

}  // namespace
}  // namespace argosy

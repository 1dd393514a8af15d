#include "argosy/samples/criteo_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "argosy/base/error.h"
#include "argosy/tensor/math.h"

namespace argosy {
namespace {

// Streams of one seed. Each row has its own, by number.
enum class Stream : uint64_t { keys = 1, effects, calibration, rows };
RandomStream stream_of(uint64_t seed, Stream which) {
  return RandomStream(seed, static_cast<uint64_t>(which));
}

// Shares of the signal in the variance of the log-odds; the rest is that of the products.
constexpr double kSlotShare = 0.65, kIntegerShare = 0.05;
constexpr double kBayesAuc = 0.80, kClicks = 0.25;

// An integer is min + median * exp(kSpread * n) with n about normal, rounded; the median is
// kMedian of the scale. Empty in so many of 16 rows.
constexpr float kSpread = 0.7F;
constexpr double kMedian = 0.25;
constexpr std::array<uint32_t, CriteoModel::kIntegers> kEmptyOf16 = {3, 0, 2, 2, 1, 3, 1,
                                                                     0, 1, 3, 1, 4, 2};
constexpr uint64_t kEmptyOf2048 = 61;  // of a category: 3 %

/// x^(-1/8) in operations that every machine rounds alike.
double eighth_root_of_inverse(double x) { return 1 / std::sqrt(std::sqrt(std::sqrt(x))); }

/// About standard normal, within 3.5: the sum of the four quarters of a number.
float normal_of(uint64_t bits) {
  const auto sum = static_cast<int32_t>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) +
                                        (bits >> 32 & 0xFFFF) + (bits >> 48));
  constexpr float kDeviation = 37837.2F;
  return static_cast<float>(sum - 2 * 65535) / kDeviation;
}

/// One-to-one on 32 bits.
uint32_t scramble(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352dU;
  x = (x ^ x >> 15) * 0x846ca68bU;
  return x ^ x >> 16;
}

double scaled(const CriteoModel::Row& row, size_t column) {
  if ((row.empty_integers >> column & 1) != 0) return 0;
  return (row.integers[column] - CriteoModel::kMin[column]) / CriteoModel::kDiff[column];
}

/// The first n numbers in an order of the stream's draws from `first` on.
template <size_t n>
std::array<size_t, n> shuffled(const RandomStream& random, uint64_t first) {
  std::array<size_t, n> order;
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(first + i, i)]);
  return order;
}

}  // namespace

CriteoModel::CriteoModel(uint64_t seed, uint64_t vocab) : seed_(seed), vocab_(vocab) {
  check<ConfigError>(vocab >= kMinVocab && vocab <= kMaxVocab, "vocab is ", vocab, ", expected ",
                     kMinVocab, " to ", kMaxVocab, " distinct values per slot");
  span_ = 1 - eighth_root_of_inverse(static_cast<double>(vocab) + 1);
  const RandomStream keys = stream_of(seed, Stream::keys);
  for (size_t i = 0; i < kCategories; ++i) keys_[i] = static_cast<uint32_t>(keys.bits(i));
  draw_effects(stream_of(seed, Stream::effects));
  calibrate(stream_of(seed, Stream::calibration));
}

CriteoModel::Row CriteoModel::row(uint64_t number) const {
  const RandomStream random(stream_of(seed_, Stream::rows).bits(0), number);
  Draw drawn = draw(random);
  drawn.row.level = level_of(drawn.odds.sum + drawn.odds.products);
  drawn.row.sum_level = level_of(drawn.odds.sum);
  constexpr uint64_t kLabelDraw = kCategories + kIntegers + 1;
  drawn.row.click = random.below(kLabelDraw, kLevels) < drawn.row.level;
  return drawn.row;
}

CriteoModel::Draw CriteoModel::draw(const RandomStream& random) const {
  Draw drawn{};
  Row& row = drawn.row;
  std::array<uint64_t, kCategories> ranks;
  for (size_t i = 0; i < kCategories; ++i) {
    // By inversion: (rank + 1)^(-1/8) is uniform, so ranks have density x^(-9/8).
    const uint64_t bits = random.bits(i);
    const double t = 1 - static_cast<double>(bits >> 11) * 0x1.0p-53 * span_;
    const double t2 = t * t, t4 = t2 * t2;
    ranks[i] = std::min(static_cast<uint64_t>(1 / (t4 * t4)), vocab_) - 1;
    row.categories[i] = scramble(static_cast<uint32_t>(ranks[i]) ^ keys_[i]);
    if ((bits & 2047) < kEmptyOf2048) row.empty_categories |= 1U << i;
  }
  const uint64_t empty_draw = random.bits(kCategories + kIntegers);
  for (size_t i = 0; i < kIntegers; ++i) {
    const float normal = normal_of(random.bits(kCategories + i));
    const double size = kMedian * kDiff[i] * static_cast<double>(math::exp(kSpread * normal));
    row.integers[i] = static_cast<int32_t>(kMin[i]) + static_cast<int32_t>(std::lround(size));
    if ((empty_draw >> (4 * i) & 15) < kEmptyOf16[i]) row.empty_integers |= 1U << i;
  }
  drawn.odds = odds_of(row, ranks);
  return drawn;
}

CriteoModel::Odds CriteoModel::odds_of(const Row& row,
                                       std::span<const uint64_t, kCategories> ranks) const {
  Odds odds{0, 0};
  std::array<double, 2 * kPairs> scores;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const size_t slot = slots_[i].slot;
    const bool empty = (row.empty_categories >> slot & 1) != 0;
    scores[i] = empty ? 0 : slots_[i].scores[std::min<uint64_t>(ranks[slot], kHead)];
    odds.sum += slots_[i].weight * scores[i];
  }
  for (const IntegerEffect& effect : integers_) {
    const double x = scaled(row, effect.column);
    odds.sum += effect.weight * (x / (x + effect.half) - effect.mean);
  }
  for (size_t i = 0; i < kPairs; ++i)
    odds.products += pairs_[i] * scores[2 * i] * scores[2 * i + 1];
  return odds;
}

CriteoModel::Scores CriteoModel::draw_scores(const RandomStream& random) const {
  constexpr std::array<double, 4> kClasses = {-3, -1, 1, 3};
  Scores scores{};
  // Each four neighbours in rank have the four classes, so that no class gets nearly all rows.
  for (size_t first = 0; first < kHead; first += kClasses.size()) {
    const auto order = shuffled<kClasses.size()>(random, first);
    for (size_t i = 0; i < kClasses.size(); ++i) scores[first + i] = kClasses[order[i]];
  }
  const size_t head = std::min<uint64_t>(kHead, vocab_);
  double mean = 0, square = 0;
  for (size_t rank = 0; rank < head; ++rank) {
    const auto x = static_cast<double>(rank + 1);
    const double share = (eighth_root_of_inverse(x) - eighth_root_of_inverse(x + 1)) / span_;
    mean += share * scores[rank];
    square += share * scores[rank] * scores[rank];
  }
  const double deviation = std::sqrt(square - mean * mean);
  for (double& score : scores) score = (score - mean) / deviation;
  return scores;
}

void CriteoModel::draw_effects(const RandomStream& random) {
  uint64_t next = 0;
  // A weight of either sign, and of different size for each effect.
  const auto weight = [&] {
    const double sign = random.below(next++, 2) == 0 ? -1 : 1;
    return sign * (0.75 + 0.5 * random.uniform(next++));
  };
  const auto order = shuffled<kCategories>(random, 1000);
  for (size_t i = 0; i < slots_.size(); ++i)
    slots_[i] = {order[i], weight(), draw_scores(RandomStream(random.bits(2000), i))};
  // Against the effects of its two slots: what is good in both is less than twice as good. Then
  // sums put rows in a wrong order; with the other sign they would be far, but mostly in order.
  for (size_t i = 0; i < kPairs; ++i) {
    const bool alike = slots_[2 * i].weight * slots_[2 * i + 1].weight > 0;
    pairs_[i] = std::abs(weight()) * (alike ? -1 : 1);
  }
  const auto columns = shuffled<kIntegers>(random, 3000);
  for (size_t i = 0; i < integers_.size(); ++i) integers_[i] = {columns[i], weight(), kMedian, 0};
}

void CriteoModel::calibrate(const RandomStream& random) {
  constexpr size_t kRows = 1 << 14;
  std::vector<Row> rows;
  rows.reserve(kRows);
  for (size_t i = 0; i < kRows; ++i) rows.push_back(draw(RandomStream(random.bits(0), i)).row);

  // Variances of the three kinds of effects, which are independent of each other.
  double slots = 0, pairs = 0, integers = 0;
  for (const SlotEffect& effect : slots_) slots += effect.weight * effect.weight;
  for (const double pair : pairs_) pairs += pair * pair;
  for (IntegerEffect& effect : integers_) {
    double sum = 0, square = 0;
    for (const Row& row : rows) {
      const double x = scaled(row, effect.column), y = x / (x + effect.half);
      sum += y;
      square += y * y;
    }
    effect.mean = sum / kRows;
    integers += effect.weight * effect.weight;
    effect.weight /= std::sqrt(square / kRows - effect.mean * effect.mean);
  }
  for (SlotEffect& effect : slots_) effect.weight *= std::sqrt(kSlotShare / slots);
  for (double& pair : pairs_) pair *= std::sqrt((1 - kSlotShare - kIntegerShare) / pairs);
  for (IntegerEffect& effect : integers_) effect.weight *= std::sqrt(kIntegerShare / integers);

  std::vector<double> odds;
  odds.reserve(kRows);
  for (size_t i = 0; i < kRows; ++i) {
    const Odds drawn = draw(RandomStream(random.bits(0), i)).odds;
    odds.push_back(drawn.sum + drawn.products);
  }
  const auto halve = [](double low, double high, const auto& too_low) {
    constexpr int kHalvings = 20;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = 0.5 * (low + high);
      (too_low(middle) ? low : high) = middle;
    }
    return 0.5 * (low + high);
  };
  const auto set_bias = [&] {
    bias_ = halve(-10, 10, [&](double bias) {
      bias_ = bias;
      uint64_t clicks = 0;
      for (const double each : odds) clicks += level_of(each);
      return static_cast<double>(clicks) < kClicks * kRows * kLevels;
    });
  };
  scale_ = halve(0, 8, [&](double scale) {
    scale_ = scale;
    set_bias();
    ExpectedAuc auc;
    for (const double each : odds) auc.add(level_of(each), level_of(each));
    return auc.value() < kBayesAuc;
  });
  set_bias();
}

uint32_t CriteoModel::level_of(double odds) const {
  const float probability = math::sigmoid(static_cast<float>(scale_ * odds + bias_));
  return std::clamp<uint32_t>(static_cast<uint32_t>(probability * float{kLevels}), 1, kLevels - 1);
}

void ExpectedAuc::add(const ExpectedAuc& other) {
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i] += other.rows_[i];
    clicks_[i] += other.clicks_[i];
  }
}

double ExpectedAuc::value() const {
  double pairs = 0, clicks = 0, others = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const auto click = static_cast<double>(clicks_[i]);
    const double other = static_cast<double>(rows_[i]) * CriteoModel::kLevels - click;
    pairs += click * (others + 0.5 * other);
    clicks += click;
    others += other;
  }
  return pairs / (clicks * others);
}

}  // namespace argosy

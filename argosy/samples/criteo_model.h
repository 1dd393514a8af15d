#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "argosy/base/rng.h"

namespace argosy {

/// The model behind generated click logs: how rows look, and how likely each is clicked.
///
/// Ids follow a power law of exponent 9/8. The most frequent ids of four slots have one of four
/// latent classes; rarer ids and empty values are neutral. The log-odds of a click are a sum of
///   - one effect per slot with classes, and a saturating one of a few integer columns, most of
///     which a linear model can learn, and
///   - products of the classes of two pairs of slots, which it cannot,
/// scaled so that for every seed and vocabulary the best possible AUC is 0.80 and a quarter of the
/// rows are clicks.
///
/// A row is a pure function of (seed, vocabulary, row number), with the same bits on every machine:
/// whole numbers, the four operations, square roots, and exp and sigmoid from tensor/math.h, but
/// nothing from the C library whose last bit may differ. Thread safety: full once constructed.
class CriteoModel {
 public:
  static constexpr size_t kIntegers = 13, kCategories = 26;
  /// Probabilities are multiples of one over this: AUCs over rows are sums of whole numbers.
  static constexpr uint32_t kLevels = 1 << 16;
  static constexpr uint64_t kMinVocab = 4, kMaxVocab = 1'000'000'000;
  /// How the criteo parser scales an integer x: (x - min) / diff.
  static constexpr std::array<double, kIntegers> kMin = {0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  static constexpr std::array<double, kIntegers> kDiff = {20, 603, 100, 50, 64000, 500, 100,
                                                          50, 500, 10,  10, 10,    50};

  struct Row {
    std::array<int32_t, kIntegers> integers;
    std::array<uint32_t, kCategories> categories;  // distinct within a slot
    uint32_t empty_integers, empty_categories;     // a bit for each
    uint32_t level;      // the probability of a click, times kLevels; never 0 nor kLevels
    uint32_t sum_level;  // what it would be without the products
    bool click;
  };

  /// Throws ConfigError unless kMinVocab <= vocab <= kMaxVocab, the distinct values of a slot.
  CriteoModel(uint64_t seed, uint64_t vocab);

  Row row(uint64_t number) const;

 private:
  static constexpr size_t kHead = 32;  // ids of a slot that have a class
  static constexpr size_t kPairs = 2;
  static constexpr size_t kIntegerEffects = 3;

  /// A slot's effect by id, with mean 0 and variance 1 over rows. The last entry is for ids past
  /// the head.
  using Scores = std::array<double, kHead + 1>;
  struct SlotEffect {
    size_t slot;
    double weight;
    Scores scores;
  };
  struct IntegerEffect {
    size_t column;
    double weight, half, mean;  // weight * (x / (x + half) - mean) of the scaled x
  };
  struct Odds {
    double sum, products;
  };
  /// The values of a row and what they say about a click.
  struct Draw {
    Row row;
    Odds odds;
  };

  Draw draw(const RandomStream& random) const;
  Odds odds_of(const Row& row, std::span<const uint64_t, kCategories> ranks) const;
  Scores draw_scores(const RandomStream& random) const;
  void draw_effects(const RandomStream& random);
  void calibrate(const RandomStream& random);
  uint32_t level_of(double odds) const;

  uint64_t seed_, vocab_;
  double span_;  // of (rank + 1)^(-1/8) over the vocabulary
  std::array<uint32_t, kCategories> keys_;
  std::array<SlotEffect, 2 * kPairs> slots_;
  std::array<double, kPairs> pairs_;  // weights of the products of slots_ 0 and 1, 2 and 3, ...
  std::array<IntegerEffect, kIntegerEffects> integers_;
  double scale_ = 1, bias_ = 0;
};

/// Rows counted by what a model predicts for them and by their true probability. The AUC is the
/// expected one: every row counts as a click by its probability and as none by the rest. Whole
/// numbers only, so joining in any order gives the same bits.
class ExpectedAuc {
 public:
  ExpectedAuc() : rows_(CriteoModel::kLevels), clicks_(CriteoModel::kLevels) {}
  /// Both in units of 1 / CriteoModel::kLevels.
  void add(uint32_t predicted, uint32_t probability) {
    ++rows_[predicted];
    clicks_[predicted] += probability;
  }
  void add(const ExpectedAuc& other);
  double value() const;

 private:
  std::vector<uint64_t> rows_, clicks_;
};

}  // namespace argosy

#pragma once

#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/train/meter.h"

namespace argosy::meters {

enum class Predictions : uint8_t { numbers, probabilities };

/// Throws DataError unless every prediction has a label and all of them can be counted.
void check_batch(std::string_view meter, const Observations& batch, Predictions predictions);

/// The threshold=0.5 of meters that decide, in [0, 1]: a prediction of at least that is a click.
float threshold_of(const Call& spec);

/// The other one as a Self, or ConfigError where it is another kind of meter. Settings are compared
/// by Self.
template <class Self>
const Self& same_meter(const Meter& other) {
  const auto* same = dynamic_cast<const Self*>(&other);
  check<ConfigError>(same != nullptr, "only a meter of the same kind can be merged into ",
                     Self::kName);
  return *same;
}

/// What one instance adds above and below the line of a RatioMeter.
struct Ratio {
  double above, below;
};

/// Base of a meter that is one sum over instances divided by another. Its author writes
///   static constexpr std::string_view kName;
///   static constexpr Predictions kPredictions;
///   static constexpr bool kSkipsNegativeLabels;
///   Ratio terms(float prediction, float label) const;
/// and where it has settings `bool same_settings(const Self&) const`. Sums are doubles: counts in
/// them are exact up to 2^53.
template <class Self>
class RatioMeter : public Meter {
 public:
  void add(const Observations& batch) final {
    check_batch(Self::kName, batch, Self::kPredictions);
    double above = above_, below = below_;
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      if (Self::kSkipsNegativeLabels && batch.labels[i] < 0) continue;
      const Ratio ratio = self().terms(batch.predictions[i], batch.labels[i]);
      above += ratio.above;
      below += ratio.below;
    }
    above_ = above;
    below_ = below;
  }
  void merge(const Meter& other) final {
    const Self& from = same_meter<Self>(other);
    check<ConfigError>(self().same_settings(from), "meters ", Self::kName,
                       " of different settings cannot be merged");
    above_ += from.above_;
    below_ += from.below_;
  }
  double value() const override {
    return below_ > 0 ? above_ / below_ : std::numeric_limits<double>::quiet_NaN();
  }
  void reset() final { above_ = below_ = 0; }

  bool same_settings(const Self&) const { return true; }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }

  double above_ = 0, below_ = 0;
};

/// Clicks and others counted by the bucket of their prediction. The AUC of the counts is exact: the
/// one of the predictions rounded down to buckets, with ties as half a pair.
class BucketCounts {
 public:
  explicit BucketCounts(size_t buckets) : counts_(2 * buckets), scale_(top_of(buckets)) {}

  size_t buckets() const { return counts_.size() / 2; }
  /// Where an instance is counted. The prediction must be in [0, 1].
  uint32_t place(float prediction, float label) const {
    return 2 * static_cast<uint32_t>(prediction * scale_) + (label > 0 ? 1 : 0);
  }
  void add(uint32_t place) { ++counts_[place]; }
  void remove(uint32_t place) { --counts_[place]; }
  /// A checked batch; labels below 0 are left out.
  void add(const Observations& batch);
  void add(const BucketCounts& other);
  void clear();
  /// Not-a-number where a class is absent.
  double auc() const;

 private:
  static float top_of(size_t buckets) { return static_cast<float>(buckets - 1); }

  std::vector<uint64_t> counts_;  // of bucket b: others at 2b, clicks at 2b + 1
  float scale_;
};

/// The buckets=4096 of a spec, from 2 to 2^24, where floats still tell them apart.
size_t buckets_of(const Call& spec, size_t position);

}  // namespace argosy::meters

#pragma once

#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "argosy/base/bytes.h"
#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/train/meter.h"

namespace argosy::meters {

enum class Predictions : uint8_t { numbers, probabilities };

/// Throws DataError unless every prediction has a label and all of them can be counted.
void check_batch(std::string_view meter, const Observations& batch, Predictions predictions);

/// The threshold=0.5 of meters that decide, in [0, 1]: a prediction of at least that is a click.
float threshold_of(const Call& spec);

/// Casts to Self; ConfigError if it is another kind of meter. Settings are compared by Self.
template <class Self>
const Self& same_meter(const Meter& other) {
  const auto* same = dynamic_cast<const Self*>(&other);
  check<ConfigError>(same != nullptr, "only a meter of the same kind can be merged into ",
                     Self::kName);
  return *same;
}

/// The header of a saved meter: its kind, and the settings that give its bytes a meaning.
void save_kind(ByteSink& out, std::string_view meter, std::initializer_list<double> settings = {});
/// Throws DataError unless save_kind() wrote the same.
void check_kind(ByteSource& in, std::string_view meter,
                std::initializer_list<double> settings = {});

/// Their number, then the values.
template <Plain T>
void save_values(ByteSink& out, std::span<const T> values) {
  out.put<uint64_t>(values.size());
  out.put_all(values);
}
/// A number that the bytes left cannot hold is refused before any memory is taken for it.
template <Plain T>
std::vector<T> load_values(ByteSource& in) {
  const auto n = in.get<uint64_t>();
  check<DataError>(n <= in.left() / sizeof(T), in.what(), ": ", n, " values of ", sizeof(T),
                   " bytes announced, ", in.left(), " bytes left");
  std::vector<T> values(n);
  in.get_all(std::span(values));
  return values;
}

/// Numerator and denominator of a RatioMeter: the terms of one instance, or the sums of all.
struct Ratio {
  double above, below;
};

/// Throws DataError for sums that no instances have: negative, or not finite.
Ratio load_sums(ByteSource& in, std::string_view meter);

/// Base of a meter that is one sum over instances divided by another. Its author writes
///   static constexpr std::string_view kName;
///   static constexpr Predictions kPredictions;
///   static constexpr bool kSkipsNegativeLabels;
///   Ratio terms(float prediction, float label) const;
/// and where it has a setting `double setting() const`; terms are never negative. Sums are doubles:
/// counts in them are exact up to 2^53.
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
    check<ConfigError>(self().setting() == from.setting(), "meters ", Self::kName,
                       " of different settings cannot be merged");
    above_ += from.above_;
    below_ += from.below_;
  }
  double value() const override {
    return below_ > 0 ? above_ / below_ : std::numeric_limits<double>::quiet_NaN();
  }
  void reset() final { above_ = below_ = 0; }
  void save(ByteSink& out) const final {
    save_kind(out, Self::kName, {self().setting()});
    out.put(Ratio{above_, below_});
  }
  void load(ByteSource& in) final {
    check_kind(in, Self::kName, {self().setting()});
    const Ratio sums = load_sums(in, Self::kName);
    above_ = sums.above;
    below_ = sums.below;
  }

  double setting() const { return 0; }

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
  /// Index of the counter of an instance. The prediction must be in [0, 1].
  uint32_t place(float prediction, float label) const {
    return 2 * static_cast<uint32_t>(prediction * scale_) + (label > 0 ? 1 : 0);
  }
  void add(uint32_t place) { ++counts_[place]; }
  void remove(uint32_t place) { --counts_[place]; }
  /// A checked batch; labels below 0 are left out.
  void add(const Observations& batch);
  void add(const BucketCounts& other);
  void clear();
  /// The counts alone: the reader knows how many buckets there are.
  void save(ByteSink& out) const { out.put_all(std::span(counts_)); }
  /// Throws DataError, and stays as it was, for more instances than can be.
  void load(ByteSource& in);
  /// NaN if a class is absent.
  double auc() const;

 private:
  static float top_of(size_t buckets) { return static_cast<float>(buckets - 1); }

  std::vector<uint64_t> counts_;  // of bucket b: others at 2b, clicks at 2b + 1
  float scale_;
};

/// The buckets=4096 of a spec, from 2 to 2^24, where floats still tell them apart.
size_t buckets_of(const Call& spec, size_t position);

}  // namespace argosy::meters

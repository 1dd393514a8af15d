#include "argosy/train/meters/meter_support.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "argosy/base/arguments.h"
#include "argosy/base/isa.h"

namespace argosy::meters {
namespace {

bool countable(float prediction, float label, float low, float high) {
  constexpr float kMost = std::numeric_limits<float>::max();
  return prediction >= low && prediction <= high && label >= -kMost && label <= kMost;
}

[[gnu::cold, noreturn]] void refuse(std::string_view meter, const Observations& batch, size_t at,
                                    Predictions kind) {
  if (!std::isfinite(batch.labels[at]))
    fail<DataError>(meter, ": the label at position ", at, " of the batch is ", batch.labels[at],
                    ", expected a finite number");
  fail<DataError>(meter, ": the prediction at position ", at, " of the batch is ",
                  batch.predictions[at], ", expected ",
                  kind == Predictions::probabilities ? "a probability" : "a finite number");
}

}  // namespace

void check_batch(std::string_view meter, const Observations& batch, Predictions predictions) {
  const size_t n = batch.predictions.size();
  check<DataError>(batch.labels.size() == n, meter, ": ", batch.labels.size(), " labels for ", n,
                   " predictions");
  constexpr float kMost = std::numeric_limits<float>::max();
  const bool probabilities = predictions == Predictions::probabilities;
  const float low = probabilities ? 0.0F : -kMost, high = probabilities ? 1.0F : kMost;
  int32_t bad = 0;
  vectorized([=, p = batch.predictions.data(), y = batch.labels.data(), &bad] {
    int32_t any = 0;
    for (size_t i = 0; i < n; ++i) any |= countable(p[i], y[i], low, high) ? 0 : 1;
    bad = any;
  });
  if (bad == 0) [[likely]]
    return;
  for (size_t i = 0; i < n; ++i)
    if (!countable(batch.predictions[i], batch.labels[i], low, high))
      refuse(meter, batch, i, predictions);
}

void save_kind(ByteSink& out, std::string_view meter, std::initializer_list<double> settings) {
  out.put_text(meter);
  for (const double setting : settings) out.put(setting);
}

void check_kind(ByteSource& in, std::string_view meter, std::initializer_list<double> settings) {
  check<DataError>(in.get_text() == meter, in.what(), ": of another kind of meter than ", meter);
  for (const double expected : settings) {
    const auto setting = in.get<double>();
    check<DataError>(setting == expected, in.what(), ": of a meter ", meter, " with the setting ",
                     setting, ", expected ", expected);
  }
}

Ratio load_sums(ByteSource& in, std::string_view meter) {
  const auto sums = in.get<Ratio>();
  const bool possible = sums.above >= 0 && sums.below >= 0 && std::isfinite(sums.above) &&
                        std::isfinite(sums.below) &&
                        (sums.below == 0 || std::isfinite(sums.above / sums.below));
  check<DataError>(possible, in.what(), ": the sums of a meter ", meter, " are ", sums.above,
                   " and ", sums.below, ", expected finite numbers from 0 on");
  return sums;
}

float threshold_of(const Call& spec) {
  constexpr Bounds kShare{0, 1, "a number from 0 to 1"};
  return static_cast<float>(argument(spec, 0, "threshold", kShare, 0.5));
}

size_t buckets_of(const Call& spec, size_t position) {
  constexpr Bounds kBuckets{2, 0x1.0p24, "a whole number from 2 to 16777216"};
  return whole_argument(spec, position, "buckets", kBuckets, 4096);
}

void BucketCounts::add(const Observations& batch) {
  for (size_t i = 0; i < batch.labels.size(); ++i)
    counts_[place(batch.predictions[i], batch.labels[i])] += batch.labels[i] >= 0 ? 1 : 0;
}

void BucketCounts::add(const BucketCounts& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

void BucketCounts::clear() { std::ranges::fill(counts_, 0); }

void BucketCounts::load(ByteSource& in) {
  // No job sees as many; sums of a thousand such counts still fit.
  constexpr uint64_t kMostInstances = uint64_t{1} << 53;
  std::vector<uint64_t> counts(counts_.size());
  in.get_all(std::span(counts));
  uint64_t all = 0;
  for (const uint64_t count : counts) {
    check<DataError>(count <= kMostInstances - all, in.what(), ": a bucket of ", count,
                     " instances besides ", all, " others, expected at most 2^53 in all");
    all += count;
  }
  counts_ = std::move(counts);
}

double BucketCounts::auc() const {
  // Pairs are counted in halves and in 128 bits, so that no count of instances is too large.
  __extension__ using Wide = unsigned __int128;
  Wide half_pairs = 0;
  uint64_t others_below = 0, clicks = 0;
  for (size_t at = 0; at < counts_.size(); at += 2) {
    const uint64_t others = counts_[at], click = counts_[at + 1];
    half_pairs += static_cast<Wide>(click) * (2 * others_below + others);
    others_below += others;
    clicks += click;
  }
  if (clicks == 0 || others_below == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(half_pairs) /
         (2.0 * static_cast<double>(clicks) * static_cast<double>(others_below));
}

}  // namespace argosy::meters

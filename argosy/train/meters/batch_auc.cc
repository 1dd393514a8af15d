// batch_auc: the auc of the last batches only, which shows how a training stands now.
//   batch_auc(steps=20, buckets=4096)   a window of the last 20 calls of add()
// merge() joins windows batch by batch from the newest: threads that run in step have one window.
#include <algorithm>
#include <utility>

#include "argosy/base/arguments.h"
#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

class BatchAuc final : public Meter {
 public:
  static constexpr std::string_view kName = "batch_auc";

  BatchAuc(size_t steps, size_t buckets) : counts_(buckets), window_(steps) {}

  void add(const Observations& batch) override {
    check_batch(kName, batch, Predictions::probabilities);
    newest_ = (newest_ + 1) % window_.size();
    Places& places = window_[newest_];
    for (const uint32_t place : places) counts_.remove(place);
    places.clear();
    places.reserve(batch.labels.size());
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      if (batch.labels[i] < 0) continue;
      places.push_back(counts_.place(batch.predictions[i], batch.labels[i]));
      counts_.add(places.back());
    }
  }

  void merge(const Meter& other) override {
    const BatchAuc& from = same_meter<BatchAuc>(other);
    const size_t steps = window_.size();
    check<ConfigError>(from.window_.size() == steps && from.counts_.buckets() == counts_.buckets(),
                       "a batch_auc of ", from.window_.size(), " steps and ",
                       from.counts_.buckets(), " buckets cannot be merged into one of ", steps,
                       " and ", counts_.buckets());
    for (size_t age = 0; age < steps; ++age) {
      const Places& theirs = from.window_[(from.newest_ + steps - age) % steps];
      Places& mine = window_[(newest_ + steps - age) % steps];
      const size_t n = theirs.size();
      mine.reserve(mine.size() + n);
      for (size_t i = 0; i < n; ++i) mine.push_back(theirs[i]);
    }
    counts_.add(from.counts_);
  }

  double value() const override { return counts_.auc(); }
  void reset() override {
    counts_.clear();
    for (Places& places : window_) places.clear();
  }

  void save(ByteSink& out) const override {
    const size_t steps = window_.size();
    save_kind(out, kName, {static_cast<double>(steps), static_cast<double>(counts_.buckets())});
    for (size_t i = 1; i <= steps; ++i)  // the oldest batch follows the newest in the ring
      save_values(out, std::span<const uint32_t>(window_[(newest_ + i) % steps]));
  }

  void load(ByteSource& in) override {
    const size_t steps = window_.size(), buckets = counts_.buckets();
    check_kind(in, kName, {static_cast<double>(steps), static_cast<double>(buckets)});
    BucketCounts counts(buckets);
    std::vector<Places> window(steps);
    for (Places& places : window) {
      places = load_values<uint32_t>(in);
      for (const uint32_t place : places) {
        check<DataError>(place < 2 * buckets, in.what(), ": an instance of a batch_auc of ",
                         buckets, " buckets is counted at ", place, ", expected a number below ",
                         2 * buckets);
        counts.add(place);
      }
    }
    counts_ = std::move(counts);
    window_ = std::move(window);
    newest_ = steps - 1;
  }

 private:
  using Places = std::vector<uint32_t>;  // where the instances of one batch are counted

  BucketCounts counts_;         // of all batches in the window
  std::vector<Places> window_;  // a ring
  size_t newest_ = 0;
};

}  // namespace

std::unique_ptr<Meter> batch_auc(const Call& spec) {
  spec.expect("meter", 2, {"steps", "buckets"});
  constexpr Bounds kSteps{1, 1e6, "a whole number from 1 to 1000000"};
  return std::make_unique<BatchAuc>(whole_argument(spec, 0, "steps", kSteps, 20),
                                    buckets_of(spec, 1));
}

}  // namespace argosy::meters

// auc: the chance that a click is predicted higher than another instance, ties counting half.
//   auc(buckets=4096)   predictions are told apart by floor(p * (buckets - 1)), as in Paddle
// Exact for predictions rounded to buckets. Not-a-number while a class is absent.
#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

class Auc final : public Meter {
 public:
  static constexpr std::string_view kName = "auc";

  explicit Auc(size_t buckets) : counts_(buckets) {}

  void add(const Observations& batch) override {
    check_batch(kName, batch, Predictions::probabilities);
    counts_.add(batch);
  }
  void merge(const Meter& other) override {
    const Auc& from = same_meter<Auc>(other);
    check<ConfigError>(from.counts_.buckets() == counts_.buckets(), "an auc of ",
                       from.counts_.buckets(), " buckets cannot be merged into one of ",
                       counts_.buckets());
    counts_.add(from.counts_);
  }
  double value() const override { return counts_.auc(); }
  void reset() override { counts_.clear(); }
  void save(ByteSink& out) const override {
    save_kind(out, kName, {static_cast<double>(counts_.buckets())});
    counts_.save(out);
  }
  void load(ByteSource& in) override {
    check_kind(in, kName, {static_cast<double>(counts_.buckets())});
    counts_.load(in);
  }

 private:
  BucketCounts counts_;
};

}  // namespace

std::unique_ptr<Meter> auc(const Call& spec) {
  spec.expect("meter", 1, {"buckets"});
  return std::make_unique<Auc>(buckets_of(spec, 0));
}

}  // namespace argosy::meters

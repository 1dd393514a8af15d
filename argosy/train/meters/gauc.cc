// gauc: the AUC within each group (user), averaged with the groups' numbers of instances as
// weights. Groups of one class only are left out: no order of theirs is better than another. Exact,
// by sorting, so it keeps every instance (16 bytes each). Predictions may be any numbers.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

struct Instance {
  uint64_t group;
  float prediction;
  uint32_t click;  // 0 or 1, as wide as to leave no byte of an instance undefined
};

struct GroupAuc {
  double auc = 0;
  uint64_t weight = 0;  // 0 where there is only one class
};

/// The AUC of a group sorted by prediction.
GroupAuc auc_of(std::span<const Instance> group) {
  uint64_t others_below = 0, clicks = 0;
  double half_pairs = 0;
  for (size_t at = 0; at < group.size();) {
    uint64_t tied[2] = {};
    const float prediction = group[at].prediction;
    for (; at < group.size() && group[at].prediction == prediction; ++at) ++tied[group[at].click];
    half_pairs += static_cast<double>(tied[1]) * static_cast<double>(2 * others_below + tied[0]);
    others_below += tied[0];
    clicks += tied[1];
  }
  if (clicks == 0 || others_below == 0) return {};
  const double pairs = static_cast<double>(clicks) * static_cast<double>(others_below);
  return {0.5 * half_pairs / pairs, group.size()};
}

class Gauc final : public Meter {
 public:
  static constexpr std::string_view kName = "gauc";

  void add(const Observations& batch) override {
    check_batch(kName, batch, Predictions::numbers);
    check<ConfigError>(batch.groups.size() == batch.labels.size(), kName,
                       " needs the group of each instance: got ", batch.groups.size(),
                       " groups for ", batch.labels.size(), " instances");
    for (size_t i = 0; i < batch.labels.size(); ++i)
      if (batch.labels[i] >= 0)
        instances_.push_back(
            {batch.groups[i], batch.predictions[i], batch.labels[i] > 0 ? 1U : 0U});
  }

  void merge(const Meter& other) override {
    const Gauc& from = same_meter<Gauc>(other);
    const size_t n = from.instances_.size();
    instances_.reserve(instances_.size() + n);
    for (size_t i = 0; i < n; ++i) instances_.push_back(from.instances_[i]);
  }

  double value() const override {
    std::vector<Instance> sorted = instances_;
    std::ranges::sort(sorted, {}, [](const Instance& instance) {
      return std::tuple(instance.group, instance.prediction);
    });
    double sum = 0, weights = 0;
    for (size_t first = 0, last = 0; first < sorted.size(); first = last) {
      while (last < sorted.size() && sorted[last].group == sorted[first].group) ++last;
      const GroupAuc group = auc_of(std::span(sorted).subspan(first, last - first));
      sum += group.auc * static_cast<double>(group.weight);
      weights += static_cast<double>(group.weight);
    }
    return weights > 0 ? sum / weights : std::numeric_limits<double>::quiet_NaN();
  }

  void reset() override { instances_.clear(); }
  void save(ByteSink& out) const override {
    save_kind(out, kName);
    save_values(out, std::span(instances_));
  }
  void load(ByteSource& in) override {
    check_kind(in, kName);
    std::vector<Instance> instances = load_values<Instance>(in);
    for (const Instance& one : instances)
      check<DataError>(std::isfinite(one.prediction) && one.click <= 1, in.what(),
                       ": an instance of gauc has the prediction ", one.prediction, " and ",
                       one.click, " clicks, expected a finite number and 0 or 1");
    instances_ = std::move(instances);
  }
  bool needs_groups() const override { return true; }

 private:
  std::vector<Instance> instances_;
};

}  // namespace

std::unique_ptr<Meter> gauc(const Call& spec) {
  spec.expect("meter", 0, {});
  return std::make_unique<Gauc>();
}

}  // namespace argosy::meters

#include "argosy/train/metric_tally.h"

#include <algorithm>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"

namespace argosy {
namespace {

double to_number(const Tensor& value) {
  return value.dtype() == DType::f32 ? static_cast<double>(value.as<float>()[0])
                                     : value.as<double>()[0];
}

constexpr uint64_t kMostInstances = uint64_t{1} << 53;  // doubles still tell them apart

// Not inlined: g++ 12 sees an overflow in the first write to a buffer whose whole life it sees.
[[gnu::noinline]] void save_measures(ByteSink& out, const Measures& measures) {
  out.put<uint64_t>(measures.names.size());
  for (const std::string& name : measures.names) out.put_text(name);
  out.put<uint64_t>(measures.means.size());
}

/// Throws DataError unless the names and the number of means match.
void check_measures(ByteSource& in, const Measures& measures) {
  const auto names = in.get<uint64_t>();
  check<DataError>(names == measures.names.size(), in.what(), ": ", names, " of them, expected ",
                   measures.names.size());
  for (const std::string& name : measures.names)
    check<DataError>(in.get_text() == name, in.what(), ": another metric in the place of ", name);
  const auto means = in.get<uint64_t>();
  check<DataError>(means == measures.means.size(), in.what(), ": ", means,
                   " of them are means over batches, expected ", measures.means.size());
}

}  // namespace

std::vector<VarId> Measures::variables() const {
  std::vector<VarId> all = means;
  for (const Scored& one : scored) {
    all.insert(all.end(), {one.prediction, one.label});
    if (one.group) all.push_back(one.group);
  }
  return all;
}

Measures Measures::renamed(std::span<const VarId> variables) const {
  Measures result = *this;
  size_t at = 0;
  for (VarId& id : result.means) id = variables[at++];
  for (Scored& one : result.scored) {
    one.prediction = variables[at++];
    one.label = variables[at++];
    if (one.group) one.group = variables[at++];
  }
  return result;
}

MetricTally::MetricTally(const Measures& measures)
    : measures_(measures), last_(measures.means.size()), totals_(measures.means.size()) {
  for (const Measures::Scored& one : measures_.scored) {
    meters_.push_back(make_meter(one.meter));
    check<ConfigError>(!meters_.back()->needs_groups() || one.group, "meter '", one.meter,
                       "' needs to know the group of each instance");
  }
}

void MetricTally::add(size_t size, ValueOf value_of) {
  for (size_t i = 0; i < last_.size(); ++i) {
    last_[i] = to_number(value_of(measures_.means[i]));
    totals_[i] += last_[i] * static_cast<double>(size);
  }
  instances_ += size;
  for (size_t i = 0; i < meters_.size(); ++i) {
    const Measures::Scored& one = measures_.scored[i];
    const Tensor& label = value_of(one.label);
    Observations seen{.predictions = value_of(one.prediction).as<float>(), .labels = {}};
    if (label.dtype() == DType::f32) {
      seen.labels = label.as<float>();
    } else {
      const auto from = label.as<int64_t>();
      labels_.assign(from.begin(), from.end());
      seen.labels = labels_;
    }
    if (one.group) {
      const auto from = value_of(one.group).as<int64_t>();
      groups_.assign(from.begin(), from.end());
      seen.groups = groups_;
    }
    meters_[i]->add(seen);
  }
}

void MetricTally::reset() {
  std::ranges::fill(totals_, 0.0);
  instances_ = 0;
  for (const auto& meter : meters_) meter->reset();
}

std::span<const double> MetricTally::means() {
  means_ = totals_;
  for (double& mean : means_) mean /= static_cast<double>(std::max<uint64_t>(instances_, 1));
  return means_;
}

std::vector<Metric> MetricTally::named(std::span<const double> means) const {
  std::vector<Metric> metrics;
  metrics.reserve(measures_.names.size());
  for (const double mean : means) metrics.push_back({measures_.names[metrics.size()], mean});
  for (const auto& meter : meters_)
    metrics.push_back({measures_.names[metrics.size()], meter->value()});
  return metrics;
}

std::vector<std::byte> MetricTally::bytes() const {
  ByteBuffer out;
  save_measures(out, measures_);
  out.put(instances_);
  out.put_all(std::span(totals_));
  out.put_all(std::span(last_));
  for (const auto& meter : meters_) meter->save(out);
  return {out.bytes().begin(), out.bytes().end()};
}

void MetricTally::merge(std::span<const std::byte> other) {
  ByteSource in(other, "metrics to merge");
  check_measures(in, measures_);
  const auto instances = in.get<uint64_t>();
  check<DataError>(instances <= kMostInstances, in.what(), ": ", instances,
                   " instances, expected at most ", kMostInstances);
  std::vector<double> totals(totals_.size()), last(last_.size());
  in.get_all(std::span(totals));
  in.get_all(std::span(last));
  std::vector<std::unique_ptr<Meter>> meters;
  for (const Measures::Scored& one : measures_.scored) {
    meters.push_back(make_meter(one.meter));
    meters.back()->load(in);
  }
  check<DataError>(in.left() == 0, in.what(), ": ", in.left(), " bytes too many");

  if (instances > 0) last_ = last;
  instances_ += instances;
  for (size_t i = 0; i < totals.size(); ++i) totals_[i] += totals[i];
  for (size_t i = 0; i < meters.size(); ++i) meters_[i]->merge(*meters[i]);
}

std::vector<Metric> MetricTally::totals() { return named(means()); }

std::vector<Metric> MetricTally::current() const { return named(last_); }

}  // namespace argosy

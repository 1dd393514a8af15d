#include "argosy/train/figures.h"

#include <algorithm>

#include "argosy/base/error.h"

namespace argosy {
namespace {

double to_number(const Tensor& value) {
  return value.dtype() == DType::f32 ? static_cast<double>(value.as<float>()[0])
                                     : value.as<double>()[0];
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

Figures::Figures(const Measures& measures)
    : measures_(measures), last_(measures.means.size()), totals_(measures.means.size()) {
  for (const Measures::Scored& one : measures_.scored) {
    meters_.push_back(make_meter(one.meter));
    check<ConfigError>(!meters_.back()->needs_groups() || one.group, "meter '", one.meter,
                       "' needs to know the group of each instance");
  }
}

void Figures::add(size_t size, ValueOf value_of) {
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

void Figures::reset() {
  std::ranges::fill(totals_, 0.0);
  instances_ = 0;
  for (const auto& meter : meters_) meter->reset();
}

std::span<const double> Figures::means() {
  means_ = totals_;
  for (double& mean : means_) mean /= static_cast<double>(std::max<uint64_t>(instances_, 1));
  return means_;
}

std::vector<Metric> Figures::named(std::span<const double> means) const {
  std::vector<Metric> metrics;
  metrics.reserve(measures_.names.size());
  for (const double mean : means) metrics.push_back({measures_.names[metrics.size()], mean});
  for (const auto& meter : meters_)
    metrics.push_back({measures_.names[metrics.size()], meter->value()});
  return metrics;
}

std::vector<Metric> Figures::totals() { return named(means()); }

std::vector<Metric> Figures::current() const { return named(last_); }

}  // namespace argosy

#include "argosy/watch/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "argosy/base/error.h"

namespace argosy {
namespace {

bool is_name(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

const char* word(MetricKind kind) {
  return kind == MetricKind::counter ? "counter"
         : kind == MetricKind::gauge ? "gauge"
                                     : "histogram";
}

void check_spec(const MetricSpec& spec, MetricKind kind) {
  check<ConfigError>(is_name(spec.name), "metric '", spec.name,
                     "': expected a name of letters, digits and _");
  const bool time = spec.unit == MetricUnit::seconds;
  const std::string_view ending = time ? "_seconds_total" : "_total";
  check<ConfigError>(spec.name.ends_with(ending) == (kind == MetricKind::counter), "metric '",
                     spec.name, "' is a ", word(kind), ": a name ends in ", ending,
                     " if and only if it is a counter's");
  check<ConfigError>(!time || kind == MetricKind::counter, "metric '", spec.name, "' is a ",
                     word(kind), ": only counters have a unit");
  for (const auto& [name, value] : spec.labels)
    check<ConfigError>(is_name(name) && !name.starts_with("__") && name != "le", "metric '",
                       spec.name, "': label '", name,
                       "', expected a name of letters, digits and _, other than le");
}

/// A text as Prometheus wants it in a label (quoted) or in a help line.
std::string escaped(std::string_view text, bool quoted) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
      continue;
    }
    if (c == '\\' || (quoted && c == '"')) result += '\\';
    result += c;
  }
  return result;
}

/// "{table="emb",le="0.1"}", or nothing.
std::string labels_text(const MetricSpec& spec, const std::string& bound = {}) {
  std::string inside;
  for (const auto& [name, value] : spec.labels)
    inside += fmt::format("{}{}=\"{}\"", inside.empty() ? "" : ",", name, escaped(value, true));
  if (!bound.empty()) inside += fmt::format("{}le=\"{}\"", inside.empty() ? "" : ",", bound);
  return inside.empty() ? "" : "{" + inside + "}";
}

void add_histogram(const MetricSample& sample, std::string& text) {
  const std::string& name = sample.spec.name;
  uint64_t below = 0;
  for (size_t i = 0; i < sample.counts.size(); ++i) {
    below += sample.counts[i];
    const std::string bound =
        i < sample.bounds.size() ? fmt::format("{}", sample.bounds[i]) : "+Inf";
    text += fmt::format("{}_bucket{} {}\n", name, labels_text(sample.spec, bound), below);
  }
  text += fmt::format("{}_sum{} {}\n", name, labels_text(sample.spec), sample.value);
  text += fmt::format("{}_count{} {}\n", name, labels_text(sample.spec), below);
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {
  check<ConfigError>(!bounds_.empty() && std::ranges::is_sorted(bounds_, std::less_equal<>()),
                     "a histogram needs bounds, each above the one before");
}

void Histogram::observe(double value) {
  const auto above = std::ranges::lower_bound(bounds_, value);
  counts_[static_cast<size_t>(above - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<uint64_t> Histogram::counts() const {
  std::vector<uint64_t> counts;
  for (const auto& count : counts_) counts.push_back(count.load(std::memory_order_relaxed));
  return counts;
}

struct Metrics::Entry {
  Entry(MetricSpec spec, MetricKind kind, std::unique_ptr<Histogram> histogram)
      : spec(std::move(spec)), kind(kind), histogram(std::move(histogram)) {}

  MetricSpec spec;
  MetricKind kind;
  Counter counter;
  Gauge gauge;
  std::unique_ptr<Histogram> histogram;
};

Metrics::Metrics() = default;
Metrics::~Metrics() = default;

Metrics::Entry& Metrics::find_or_add(MetricSpec spec, MetricKind kind, std::vector<double> bounds) {
  check_spec(spec, kind);
  auto histogram =
      kind == MetricKind::histogram ? std::make_unique<Histogram>(std::move(bounds)) : nullptr;
  const Lock lock(mutex_);
  for (const auto& entry : entries_) {
    if (entry->spec.name != spec.name) continue;
    check<ConfigError>(entry->kind == kind && entry->spec.unit == spec.unit, "metric '", spec.name,
                       "' is a ", word(entry->kind), ", now asked for as a ", word(kind),
                       " or in another unit");
    check<ConfigError>(!histogram || histogram->bounds() == entry->histogram->bounds(), "metric '",
                       spec.name, "' has other bounds already");
    if (entry->spec.labels == spec.labels) return *entry;
  }
  entries_.push_back(std::make_unique<Entry>(std::move(spec), kind, std::move(histogram)));
  return *entries_.back();
}

Counter& Metrics::counter(MetricSpec spec) {
  return find_or_add(std::move(spec), MetricKind::counter, {}).counter;
}
Gauge& Metrics::gauge(MetricSpec spec) {
  return find_or_add(std::move(spec), MetricKind::gauge, {}).gauge;
}
Histogram& Metrics::histogram(MetricSpec spec, std::vector<double> bounds) {
  return *find_or_add(std::move(spec), MetricKind::histogram, std::move(bounds)).histogram;
}

std::vector<MetricSample> Metrics::samples() const {
  constexpr double kNanosecond = 1e-9;
  std::vector<MetricSample> samples;
  {
    const Lock lock(mutex_);
    for (const auto& entry : entries_) {
      MetricSample& sample = samples.emplace_back(MetricSample{entry->spec, entry->kind});
      if (entry->kind == MetricKind::counter) {
        sample.value = static_cast<double>(entry->counter.value()) *
                       (entry->spec.unit == MetricUnit::seconds ? kNanosecond : 1);
      } else if (entry->kind == MetricKind::gauge) {
        sample.value = entry->gauge.value();
      } else {
        sample.value = entry->histogram->sum();
        sample.bounds = entry->histogram->bounds();
        sample.counts = entry->histogram->counts();
      }
    }
  }
  std::ranges::sort(samples, [](const MetricSample& a, const MetricSample& b) {
    return std::tie(a.spec.name, a.spec.labels) < std::tie(b.spec.name, b.spec.labels);
  });
  return samples;
}

std::string prometheus_text(std::span<const MetricSample> samples) {
  std::string text;
  const std::string* last = nullptr;
  for (const MetricSample& sample : samples) {
    const std::string& name = sample.spec.name;
    if (last == nullptr || *last != name)
      text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(sample.spec.help, false),
                          name, word(sample.kind));
    last = &name;
    if (sample.kind == MetricKind::histogram)
      add_histogram(sample, text);
    else
      text += fmt::format("{}{} {}\n", name, labels_text(sample.spec), sample.value);
  }
  return text;
}

}  // namespace argosy

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/mutex.h"

namespace argosy {

/// A sum that only grows. Thread safety: full; an update is one relaxed addition.
class Counter {
 public:
  void add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  /// For counters of MetricUnit::seconds.
  void add(std::chrono::nanoseconds time) { add(static_cast<uint64_t>(time.count())); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  alignas(64) std::atomic<uint64_t> value_ = 0;  // threads that update others do not share its line
};

/// A value that goes up and down. Thread safety: full.
class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_ = 0;
};

/// How often values fell below each of a few bounds. Thread safety: full; an update is a search
/// among the bounds and three relaxed operations, without memory.
class Histogram {
 public:
  /// Upper bounds, rising.
  explicit Histogram(std::vector<double> bounds);
  void observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  /// One count per bound and one for values above all; each value is counted once.
  std::vector<uint64_t> counts() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double> bounds_;
  std::vector<std::atomic<uint64_t>> counts_;
  std::atomic<double> sum_ = 0;
};

enum class MetricKind : uint8_t { counter, gauge, histogram };
/// The unit of a counter: things, or time (in nanoseconds, shown in seconds).
enum class MetricUnit : uint8_t { things, seconds };

struct MetricSpec {
  std::string name;  // "argosy_steps_total": letters, digits and _
  std::string help;  // one line
  std::vector<std::pair<std::string, std::string>> labels = {};
  MetricUnit unit = MetricUnit::things;
};

/// A metric as it was at one moment.
struct MetricSample {
  MetricSpec spec;
  MetricKind kind = MetricKind::counter;
  double value = 0;                   // of a histogram: the sum
  std::vector<double> bounds = {};    // of a histogram
  std::vector<uint64_t> counts = {};  // by bound and above; see Histogram::counts
};

/// The metrics of a process, with any front end. Callers look their metric up once and keep the
/// reference, which lives as long as the registry; the same name and labels give the same metric.
/// Names follow Prometheus' rules: a counter's ends in _total, of time in _seconds_total. Any other
/// name, or one already used for another kind of metric, is a ConfigError. Thread safety: full.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  Counter& counter(MetricSpec spec);
  Gauge& gauge(MetricSpec spec);
  /// `bounds` must be the same for all labels of a name.
  Histogram& histogram(MetricSpec spec, std::vector<double> bounds);

  /// All of them, by name and then by labels.
  std::vector<MetricSample> samples() const;

 private:
  struct Entry;
  Entry& find_or_add(MetricSpec spec, MetricKind kind, std::vector<double> bounds);

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Entry>> entries_ GUARDED_BY(mutex_);
};

/// As Prometheus reads it (text format 0.0.4).
std::string prometheus_text(std::span<const MetricSample> samples);

}  // namespace argosy

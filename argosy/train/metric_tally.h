#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/function_ref.h"
#include "argosy/graph/program.h"
#include "argosy/train/meter.h"
#include "argosy/train/progress.h"

namespace argosy {

/// The metrics of a program: means over batches, and meters.
struct Measures {
  struct Scored {
    std::string meter;  // meter.h
    VarId prediction, label, group;
  };
  std::vector<std::string> names;  // of the means, the loss first, then of the meters
  std::vector<VarId> means;
  std::vector<Scored> scored;

  /// All variables that are read; these measures with the variables' new ids.
  std::vector<VarId> variables() const;
  Measures renamed(std::span<const VarId> variables) const;
};

/// Accumulates metrics over many batches. Thread safety: none.
class MetricTally {
 public:
  explicit MetricTally(const Measures& measures);  // throws ConfigError for an unknown meter

  using ValueOf = FunctionRef<const Tensor&(VarId)>;
  void add(size_t size, ValueOf value_of);
  /// Forgets all batches.
  void reset();
  /// Over all batches, without the meters; valid until the next call.
  std::span<const double> means();
  /// Over all batches.
  std::vector<Metric> totals();
  /// Means of the last batch, meters over all batches.
  std::vector<Metric> current() const;
  /// Seen since the last reset.
  uint64_t instances() const { return instances_; }

  /// The whole state, for merge() in another process.
  std::vector<std::byte> bytes() const;
  /// As if the batches in these bytes had been added here. For damaged bytes or other measures it
  /// throws DataError and changes nothing.
  void merge(std::span<const std::byte> other);

 private:
  std::vector<Metric> named(std::span<const double> means) const;

  Measures measures_;
  std::vector<double> last_, totals_, means_;
  uint64_t instances_ = 0;
  std::vector<std::unique_ptr<Meter>> meters_;
  std::vector<float> labels_;  // converted, if those of a batch are not floats
  std::vector<uint64_t> groups_;
};

}  // namespace argosy

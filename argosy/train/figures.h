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

/// Which figures a program gives: those that are means over batches, and those of meters.
struct Measures {
  struct Scored {
    std::string meter;  // meter.h
    VarId prediction, label, group;
  };
  std::vector<std::string> names;  // of the means, the loss first, then of the meters
  std::vector<VarId> means;
  std::vector<Scored> scored;

  /// Every variable that must be at hand, and the same measures after these were given new ids.
  std::vector<VarId> variables() const;
  Measures renamed(std::span<const VarId> variables) const;
};

/// The figures over many batches. Thread safety: none.
class Figures {
 public:
  explicit Figures(const Measures& measures);  // throws ConfigError for an unknown meter

  using ValueOf = FunctionRef<const Tensor&(VarId)>;
  void add(size_t size, ValueOf value_of);
  /// Forgets all batches.
  void reset();
  /// Over all batches, without the meters; good until the next call.
  std::span<const double> means();
  /// Over all batches.
  std::vector<Metric> totals();
  /// Means of the last batch, meters over all batches.
  std::vector<Metric> current() const;
  /// Seen since the last reset.
  uint64_t instances() const { return instances_; }

  /// All that was seen, for the merge() of another process.
  std::vector<std::byte> bytes() const;
  /// As if the batches of the Figures that gave these bytes had been added here. Throws DataError,
  /// and stays as it was, for bytes that are damaged or of other measures.
  void merge(std::span<const std::byte> other);

 private:
  std::vector<Metric> named(std::span<const double> means) const;

  Measures measures_;
  std::vector<double> last_, totals_, means_;
  uint64_t instances_ = 0;
  std::vector<std::unique_ptr<Meter>> meters_;
  std::vector<float> labels_;  // of a batch whose labels are no floats
  std::vector<uint64_t> groups_;
};

}  // namespace argosy

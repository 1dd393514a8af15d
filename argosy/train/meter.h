#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/plugins.h"

namespace argosy {

class ByteSink;
class ByteSource;
class Call;

/// One batch's predictions and labels and, if a meter needs it, each instance's group (user).
/// Meters of clicks take a label above 0 as a click, 0 as none, and leave out instances with a
/// label below 0.
struct Observations {
  std::span<const float> predictions, labels;
  std::span<const uint64_t> groups = {};
};

/// A metric over all instances seen, which is no mean over batches. In a steady state add()
/// allocates nothing (gauc, which keeps its instances, grows). Thread safety: none; use one per
/// thread, joined by merge(), or across processes by save() there and load() here.
class Meter {
 public:
  virtual ~Meter() = default;
  /// Counts a batch, or none of it: throws DataError naming the position of a prediction or label
  /// that is not finite, or of a prediction outside [0, 1] if the meter needs probabilities;
  /// ConfigError if needed groups are missing.
  virtual void add(const Observations& batch) = 0;
  /// As if the other's batches had been added here. Throws ConfigError unless it is of the same
  /// kind and has the same settings.
  virtual void merge(const Meter& other) = 0;
  /// NaN while undefined: nothing seen, or an AUC of one class only.
  virtual double value() const = 0;
  /// Forgets all batches.
  virtual void reset() = 0;
  /// All that was seen, to the bit.
  virtual void save(ByteSink& out) const = 0;
  /// Replaces the meter's state by one that save() wrote, and reads no further. Throws DataError,
  /// leaving it unchanged, for bytes that cannot be of this kind of meter with these settings.
  virtual void load(ByteSource& in) = 0;
  virtual bool needs_groups() const { return false; }
};

/// From "auc", "auc(buckets=4096)", "recall(threshold=0.5)" ...: one of meters/*.cc. Throws
/// ConfigError naming the nearest meter or argument.
std::unique_ptr<Meter> make_meter(std::string_view text);
std::vector<std::string> meter_names();

/// A file of meters/: its name is the meter's.
using MeterPlugin = Plugin<std::unique_ptr<Meter>(const Call& spec)>;
std::vector<MeterPlugin> builtin_meters();

}  // namespace argosy

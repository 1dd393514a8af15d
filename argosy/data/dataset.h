#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "argosy/data/batch.h"

namespace argosy {

/// Source of batches, epoch after epoch.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual void begin_epoch(uint64_t seed) = 0;
  /// Fills feeds and size, reusing the batch's memory; false at the end of the epoch.
  virtual bool next(Batch& out) = 0;
  /// Batches of one epoch, where that is known.
  virtual std::optional<uint64_t> batches() const { return std::nullopt; }
};

struct ArrayOptions {
  size_t batch_size = 32;
  bool shuffle = true;     // a new order each epoch, from the epoch's seed
  bool drop_last = false;  // leave out a last batch that is not full
};

/// Batches of arrays in memory; axis 0 of each counts the instances.
std::unique_ptr<Dataset> array_dataset(Feeds arrays, const ArrayOptions& options);

}  // namespace argosy

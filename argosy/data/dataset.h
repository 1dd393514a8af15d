#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/data/batch.h"

namespace argosy {

/// How far an epoch has been delivered: enough to resume it with any number of threads.
struct DataPosition {
  uint64_t batches = 0;
  /// For data streamed from files: those begun or finished, the one read last at the end.
  std::vector<FileMark> files;
};

/// Source of batches, epoch after epoch.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// `from`: skips what an earlier run of this epoch, with the same seed, has delivered.
  virtual void begin_epoch(uint64_t seed, const DataPosition& from = {}) = 0;
  /// Fills what readers fill of a batch, using its memory again; false at the end of the epoch.
  /// Any thread.
  virtual bool next(Batch& out) = 0;
  /// An epoch is one pass over the data, or more if processes that share them are lost: call it
  /// when all batches of a pass are applied. True: others have left data behind, which next() may
  /// return now. May block.
  virtual bool begin_next_pass() { return false; }
  /// Number of the present pass within the epoch, from 0.
  virtual uint64_t pass() const { return 0; }
  virtual uint64_t most_passes() const { return 1; }
  /// After the batches that next() has given.
  virtual DataPosition position() const = 0;
  /// Batches of one epoch, if known.
  virtual std::optional<uint64_t> batches() const { return std::nullopt; }
  /// After an epoch, remarks for the user, one per line: bad lines skipped, an audit.
  virtual std::vector<std::string> notes() const { return {}; }
};

/// One of `count` equal parts; the whole if `count` is 1.
struct Share {
  size_t index = 0, count = 1;
};

struct ArrayOptions {
  size_t batch_size = 32;
  bool shuffle = true;     // a new order each epoch, from the epoch's seed
  bool drop_last = false;  // leave out a last batch that is not full
  /// Part of the shuffled instances; the parts of all indices make one epoch.
  Share share = {};
};

/// Batches of arrays in memory; axis 0 of each counts the instances. For one thread.
std::unique_ptr<Dataset> array_dataset(Feeds arrays, const ArrayOptions& options);

/// Every count-th batch of a data set whose order depends on its seed only. The others are read and
/// dropped.
std::unique_ptr<Dataset> share_of(std::unique_ptr<Dataset> all, Share share);

}  // namespace argosy

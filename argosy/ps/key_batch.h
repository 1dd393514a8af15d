#pragma once

#include <span>
#include <vector>

#include "argosy/base/key.h"
#include "argosy/ps/row_store.h"

namespace argosy::ps {

/// The keys of one call, sorted by shard. Its buffers are reused from call to call.
/// Thread safety: none.
class KeyBatch {
 public:
  /// Takes the keys whose shard is `part` modulo `parts`. Keys of a shard stay in the caller's
  /// order. shards is a power of two.
  void group(std::span<const Key> keys, size_t shards, size_t part = 0, size_t parts = 1);
  size_t size() const { return begins_.back(); }  // keys taken
  std::span<const Probe> shard(size_t shard) const {
    return std::span(probes_).subspan(begins_[shard], begins_[shard + 1] - begins_[shard]);
  }
  /// Index of a shard's first probe, with the probes of all shards laid end to end.
  size_t begin(size_t shard) const { return begins_[shard]; }

 private:
  struct Cursor {
    uint32_t at, step;  // where a shard's next probe goes
  };
  std::vector<uint64_t> hashes_;
  std::vector<Cursor> cursors_;   // by shard
  std::vector<Probe> probes_;     // those taken, and one place more
  std::vector<uint32_t> begins_;  // by shard, and the end of the last
};

}  // namespace argosy::ps

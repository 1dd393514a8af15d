#pragma once

#include <span>
#include <vector>

#include "argosy/base/rows.h"
#include "argosy/ps/row_store.h"

namespace argosy {

/// The keys of one call, sorted by shard: buffers that are used again from call to call.
/// Thread safety: none.
class KeyBatch {
 public:
  /// Keys of a shard stay in the caller's order. shards is a power of two.
  void group(std::span<const Key> keys, size_t shards);
  std::span<Probe> shard(size_t shard) {
    return std::span(probes_).subspan(begin(shard), ends_[shard + 1] - begin(shard));
  }
  /// Where a shard's probes begin, if those of all shards stand in a row.
  size_t begin(size_t shard) const { return ends_[shard]; }

  /// One probe for each different key of a shard's probes, and the gradient it takes.
  struct Gradients {
    std::span<const Probe> probes;
    std::span<const float* const> grads;
  };
  /// Adds up the gradients of equal keys, in the caller's order. Rearranges `probes`; what it
  /// returns is good until the next call.
  Gradients merge(std::span<Probe> probes, const float* grads, size_t dim);

 private:
  std::vector<uint64_t> hashes_;
  std::vector<Probe> probes_;
  std::vector<uint32_t> ends_;  // ends_[i]: where shard i begins, once grouped
  std::vector<uint32_t> seen_;  // hash table of places in probes, + 1
  std::vector<const float*> grads_;
  std::vector<uint8_t> summed_;  // by place: grads_ points into sums_
  std::vector<float> sums_;
};

}  // namespace argosy

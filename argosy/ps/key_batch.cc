#include "argosy/ps/key_batch.h"

#include <algorithm>
#include <bit>

namespace argosy {

void KeyBatch::group(std::span<const Key> keys, size_t shards) {
  hashes_.resize(keys.size());
  probes_.resize(keys.size());
  ends_.assign(shards + 2, 0);
  for (size_t i = 0; i < keys.size(); ++i) {
    hashes_[i] = RowStore::hash(keys[i]);
    ++ends_[hashes_[i] % shards + 2];
  }
  for (size_t i = 2; i < ends_.size(); ++i) ends_[i] += ends_[i - 1];
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint64_t hash = hashes_[i];
    probes_[ends_[hash % shards + 1]++] = {hash, static_cast<uint32_t>(i)};
  }
}

KeyBatch::Gradients KeyBatch::merge(std::span<Probe> probes, const float* grads, size_t dim) {
  const size_t slots = std::bit_ceil(2 * probes.size() + 1);
  seen_.assign(slots, 0);
  grads_.resize(probes.size());
  size_t unique = 0, sums = 0;
  for (const Probe probe : probes) {
    const float* const grad = grads + probe.position * dim;
    size_t slot = (probe.hash >> RowStore::kFreeHashBits) % slots;
    // Different keys have different hashes.
    while (seen_[slot] != 0 && probes[seen_[slot] - 1].hash != probe.hash)
      slot = (slot + 1) % slots;
    if (seen_[slot] == 0) {
      probes[unique] = probe;
      grads_[unique] = grad;
      seen_[slot] = static_cast<uint32_t>(++unique);
      continue;
    }
    if (sums == 0) {
      summed_.assign(probes.size(), 0);
      sums_.resize(std::max(sums_.size(), probes.size() * dim));
    }
    const size_t place = seen_[slot] - 1;
    if (summed_[place] == 0) {
      float* const sum = sums_.data() + sums;
      std::copy_n(grads_[place], dim, sum);
      grads_[place] = sum;
      summed_[place] = 1;
      sums += dim;
    }
    float* const sum = sums_.data() + (grads_[place] - sums_.data());
    for (size_t i = 0; i < dim; ++i) sum[i] += grad[i];
  }
  return {probes.first(unique), std::span(grads_).first(unique)};
}

}  // namespace argosy

#include "argosy/ps/key_batch.h"

namespace argosy::ps {

void KeyBatch::group(std::span<const Key> keys, size_t shards, size_t part, size_t parts) {
  const uint64_t mask = shards - 1;
  hashes_.resize(keys.size());
  begins_.assign(shards + 1, 0);
  for (size_t i = 0; i < keys.size(); ++i) {
    hashes_[i] = RowStore::hash(keys[i]);
    ++begins_[(hashes_[i] & mask) + 1];
  }
  cursors_.resize(shards);
  for (size_t shard = 0; shard < shards; ++shard) {
    const bool taken = shard % parts == part;
    cursors_[shard] = {begins_[shard], taken ? 1U : 0U};
    begins_[shard + 1] = begins_[shard] + (taken ? begins_[shard + 1] : 0);
  }
  // Keys of other parts all go to a last place that nobody reads: a branch on the part would be
  // guessed wrong for every other key.
  const uint32_t nowhere = begins_.back();
  for (Cursor& cursor : cursors_)
    if (cursor.step == 0) cursor.at = nowhere;
  probes_.resize(nowhere + size_t{1});
  for (size_t i = 0; i < keys.size(); ++i) {
    Cursor& cursor = cursors_[hashes_[i] & mask];
    probes_[cursor.at] = {hashes_[i], static_cast<uint32_t>(i)};
    cursor.at += cursor.step;
  }
}

}  // namespace argosy::ps

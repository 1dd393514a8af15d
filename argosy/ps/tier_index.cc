#include "argosy/ps/tier_index.h"

#include <algorithm>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

constexpr size_t kRowsOfPartition = 12;
constexpr size_t kManyChunks = 8;  // of blocks of one size

}  // namespace

TierIndex::TierIndex(size_t rows, size_t chunk) {
  const size_t partitions =
      std::clamp<size_t>(std::bit_floor(rows / kRowsOfPartition + 1), 2, kMostPartitions);
  shift_ = 64 - std::countr_zero(partitions);
  blocks_.resize(partitions, kNone);
  classes_.resize(kClasses);
  for (uint32_t cls = 0; cls < kClasses; ++cls) {
    const size_t blocks = std::max<size_t>(1, chunk / (words(cls) * sizeof(uint64_t)));
    classes_[cls].chunk_bits = static_cast<int>(std::bit_width(blocks)) - 1;
  }
}

void TierIndex::insert(uint64_t hash, bool hot, uint64_t place) {
  const size_t partition = partition_of(hash);
  if (blocks_[partition] == kNone) {
    const uint32_t fresh = take_block(0);
    block(fresh)[0] = head(partition, 0);
    blocks_[partition] = fresh;
  }
  const uint32_t before = blocks_[partition];
  if (count(block(before)[0]) == words(class_of(before)) - 1)
    resize(partition, class_of(before) + 1);
  uint64_t* const words = block(blocks_[partition]);
  Entry& entry = words[1 + count(words[0]++)];
  entry = tag(hash);
  move(entry, hot, place);
  ++size_;
}

void TierIndex::erase(uint64_t hash, Entry* entry) {
  const size_t partition = partition_of(hash);
  const uint32_t own = blocks_[partition];
  uint64_t* const words = block(own);
  *entry = words[count(words[0])];
  const size_t left = count(--words[0]);
  --size_;
  if (left == 0) {
    blocks_[partition] = kNone;
    free_block(own);
  } else if (const uint32_t cls = class_of(own); cls > 0 && left + 3 < TierIndex::words(cls)) {
    resize(partition, cls - 1);  // it is three below what fills it
  }
}

uint32_t TierIndex::take_block(uint32_t cls) {
  check<ConfigError>(cls < kClasses, "an index of ", size_, " rows in ", blocks_.size(),
                     " partitions is overfull: give the table more memory");
  Class& own = classes_[cls];
  check<ConfigError>(own.size < (uint32_t{1} << kNumberBits), "an index of ", size_,
                     " rows is full: give the table more shards");
  if (own.size >> own.chunk_bits == own.chunks.size()) {
    own.chunks.push_back(std::make_unique_for_overwrite<uint64_t[]>(words(cls) << own.chunk_bits));
    bytes_ += chunk_bytes(cls);
  }
  return ref(cls, own.size++);
}

/// The last block of its class takes its place.
void TierIndex::free_block(uint32_t freed) {
  const uint32_t cls = class_of(freed);
  Class& own = classes_[cls];
  const uint32_t last = ref(cls, --own.size);
  if (last != freed) {
    uint64_t* const to = block(freed);
    std::copy_n(block(last), words(cls), to);
    blocks_[to[0] >> 32] = freed;
  }
  // Of many chunks one is kept, or a block that comes and goes would take and free one each time.
  const size_t needed = (size_t{own.size} + (size_t{1} << own.chunk_bits) - 1) >> own.chunk_bits;
  if (own.chunks.size() <= needed + (needed >= kManyChunks ? 1 : 0)) return;
  own.chunks.pop_back();
  bytes_ -= chunk_bytes(cls);
}

void TierIndex::resize(size_t partition, uint32_t cls) {
  const uint32_t fresh = take_block(cls), before = blocks_[partition];
  const uint64_t* const from = block(before);
  std::copy_n(from, 1 + count(from[0]), block(fresh));
  blocks_[partition] = fresh;
  free_block(before);
}

}  // namespace argosy::ps

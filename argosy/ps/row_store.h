#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "argosy/base/function_ref.h"
#include "argosy/base/key.h"
#include "argosy/base/rng.h"
#include "argosy/ps/arena.h"

namespace argosy::ps {

/// A key on its way to its row: its hash, and its position in the caller's list of keys.
struct Probe {
  uint64_t hash;
  uint32_t position;
};

/// Rows of a fixed number of floats by key, at addresses that stay until the row is erased: one
/// shard of a table. Each row holds its key in front of its floats, so the index needs only 4
/// bytes a slot: a row number and 7 bits of the hash. The index is cut into segments of 2,048
/// slots which split one by one as they fill (extendible hashing): it grows with the rows, and no
/// insertion ever waits for more than one segment. Segments have different limits, or nearly all
/// of them would split at the same time, as hashes fill them evenly. See
/// docs/decisions/0005-index-of-a-table.md. Uses the bits of a hash above the lowest kFreeHashBits.
/// Thread safety: none.
class RowStore {
 public:
  static constexpr int kFreeHashBits = 12;
  static constexpr size_t kMaxRows = (size_t{1} << 25) - 2;  // of one store

  /// The arena must outlive the store.
  RowStore(size_t floats, Arena& arena);

  static constexpr uint64_t hash(Key key) { return mix(key); }

  float* find(Key key, uint64_t hash) const;
  /// A row of zeros for a key that has none. Throws ConfigError past kMaxRows.
  float* insert(Key key, uint64_t hash);
  /// A later insert reuses the row's memory.
  void erase(Key key, uint64_t hash);
  size_t size() const { return size_; }

  /// find() for many: rows[i] is the row of probes[i], or null. Index slots and the first
  /// `floats` of each row are prefetched ahead of their use.
  void find_all(std::span<const Probe> probes, std::span<const Key> keys, size_t floats,
                std::span<float*> rows) const;
  /// Prefetches the key and the first `floats` of a row, if there is one.
  static void prefetch(const float* row, size_t floats) {
    if (row == nullptr) return;
    const float* const end = row + floats;
    for (const float* line = row - kKeyFloats; line < end; line += kLineFloats)
      __builtin_prefetch(line);
  }
  /// In no particular order; the store must not change meanwhile.
  void for_each(FunctionRef<void(Key, float*)> visit) const;
  /// Visits up to `at_most` rows from `place` on and advances it; returns how many. A walk starts
  /// at 0 and ends when fewer come. The store may change between calls: a row that stays is visited
  /// exactly once.
  size_t walk(uint64_t& place, size_t at_most, FunctionRef<void(Key, const float*)> visit) const;

 private:
  static constexpr int kSlotBits = 11, kRowBits = 25;
  static constexpr uint32_t kSlots = 1U << kSlotBits;
  static constexpr uint32_t kMinLimit = kSlots / 2, kMaxLimit = kSlots / 8 * 7;
  static constexpr uint32_t kRowMask = (1U << kRowBits) - 1;
  static constexpr uint32_t kEmpty = 0, kErased = kRowMask;  // slots; no row has these numbers
  static constexpr size_t kLineFloats = 16;                  // of a cache line
  static constexpr size_t kKeyFloats = sizeof(Key) / sizeof(float);

  struct Segment {
    uint32_t used;   // slots that are not empty, erased ones included
    uint32_t limit;  // of used
    uint32_t depth;  // top bits of the hash that all its keys share
    alignas(Arena::kAlignment) uint32_t slots[kSlots];
  };

  static uint32_t tag(uint64_t hash) { return static_cast<uint32_t>(hash >> 12) << kRowBits; }
  static uint32_t home(uint64_t hash) { return static_cast<uint32_t>(hash >> 19) % kSlots; }
  static bool tag_agrees(uint32_t slot, uint32_t tag) { return (slot ^ tag) <= kRowMask; }
  static Key key_of(const float* row) {
    Key key;
    std::memcpy(&key, row - kKeyFloats, sizeof key);
    return key;
  }
  static void place(Segment& segment, uint64_t hash, uint32_t row);

  size_t directory_index(uint64_t hash) const { return (hash >> 1) >> (63 - depth_); }
  Segment& segment(uint64_t hash) const { return *directory_[directory_index(hash)]; }
  float* row(uint32_t number) const {
    return slabs_[number >> slab_bits_] + (number & ((1U << slab_bits_) - 1)) * stride_;
  }
  static uint32_t limit_of(uint64_t hash, uint32_t depth);
  float* candidate(uint64_t hash) const;
  uint32_t* find_slot(Key key, uint64_t hash) const;
  uint32_t new_row();
  void make_room(uint64_t hash);
  Segment& new_sibling(Segment& full, uint64_t hash);

  size_t floats_, stride_;  // stride in floats, the key included
  int slab_bits_, depth_ = 0;
  Arena& arena_;
  std::vector<Segment*> directory_;  // by the top depth_ bits of the hash
  std::vector<float*> slabs_;        // to the floats of their first row
  std::vector<uint32_t> free_;       // numbers of erased rows
  uint32_t next_row_ = 1;
  size_t size_ = 0;
};

}  // namespace argosy::ps

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace argosy::ps {

/// Where rows are, by the hashes of their keys, in about ten bytes a row. It holds no keys: an
/// entry has 23 bits of the hash, beside those that say its partition, so more than one may agree
/// with a hash, and whoever has the row compares its key. Entries lie in partitions of about a
/// dozen, whose blocks grow by two entries; blocks of one size lie close, so nothing is lost
/// between them. Uses the bits of a hash above the lowest kFreeHashBits. Thread safety: none.
class TierIndex {
 public:
  using Entry = uint64_t;
  static constexpr int kPlaceBits = 40, kFreeHashBits = 12;
  static constexpr uint64_t kPlaceMask = (uint64_t{1} << kPlaceBits) - 1;
  static constexpr uint64_t kMostPartitions = uint64_t{1} << 26;

  /// Good for `rows`, and slower with many more. Memory comes in pieces of about `chunk` bytes.
  TierIndex(size_t rows, size_t chunk);

  // A row is in memory, at the slot that is its place, or on the disk.
  static bool is_hot(Entry entry) { return (entry & kHot) != 0; }
  static uint64_t place(Entry entry) { return entry & kPlaceMask; }
  static void move(Entry& entry, bool hot, uint64_t place) {
    entry = (entry & kTagMask) | (hot ? kHot : 0) | place;
  }

  /// The first entry that agrees with the hash and for which is(entry) holds; or null. Good until
  /// the next insert or erase.
  template <class Is>
  Entry* find(uint64_t hash, const Is& is) {
    const Entry wanted = tag(hash);
    for (Entry& entry : entries(partition_of(hash)))
      if (((entry ^ wanted) & kTagMask) == 0 && is(entry)) return &entry;
    return nullptr;
  }
  void insert(uint64_t hash, bool hot, uint64_t place);
  void erase(uint64_t hash, Entry* entry);

  /// Partitions are in the order of hashes.
  size_t partitions() const { return blocks_.size(); }
  size_t partition_of(uint64_t hash) const { return hash >> shift_; }
  /// The first hash of a partition.
  uint64_t first_hash(size_t partition) const { return static_cast<uint64_t>(partition) << shift_; }
  std::span<Entry> entries(size_t partition) {
    const uint32_t ref = blocks_[partition];
    if (ref == kNone) return {};
    uint64_t* const words = block(ref);
    return {words + 1, count(words[0])};
  }
  void prefetch_block(uint64_t hash) const { __builtin_prefetch(&blocks_[partition_of(hash)]); }
  void prefetch_entries(uint64_t hash) const {
    const uint32_t ref = blocks_[partition_of(hash)];
    if (ref == kNone) return;
    const uint64_t* const words = block(ref);
    __builtin_prefetch(words);
    __builtin_prefetch(words + 8);
  }

  size_t size() const { return size_; }
  size_t bytes() const { return blocks_.size() * sizeof(uint32_t) + bytes_; }

 private:
  // A block of class c has a word that says whose it is and how many entries it has, and room for
  // 2c + 1 of them. A reference is a class and a number in it.
  static constexpr int kTagBits = 23, kNumberBits = 26;
  static constexpr Entry kHot = uint64_t{1} << 63;
  static constexpr Entry kTagMask = ((uint64_t{1} << kTagBits) - 1) << kPlaceBits;
  static constexpr uint32_t kNone = ~uint32_t{0}, kClasses = 63;

  struct Class {
    std::vector<std::unique_ptr<uint64_t[]>> chunks;
    int chunk_bits = 0;  // of the blocks in a chunk
    uint32_t size = 0;   // blocks
  };

  static uint64_t head(size_t owner, size_t count) { return (owner << 32) | count; }
  static size_t count(uint64_t head) { return static_cast<uint32_t>(head); }
  static size_t words(uint32_t cls) { return 2 * (size_t{cls} + 1); }
  static uint32_t ref(uint32_t cls, uint32_t number) { return (cls << kNumberBits) | number; }
  static uint32_t class_of(uint32_t ref) { return ref >> kNumberBits; }
  static uint32_t number_of(uint32_t ref) { return ref & ((uint32_t{1} << kNumberBits) - 1); }

  Entry tag(uint64_t hash) const { return (hash >> (shift_ - kTagBits)) << kPlaceBits & kTagMask; }
  uint64_t* block(uint32_t ref) const {
    const uint32_t cls = class_of(ref), number = number_of(ref);
    const Class& own = classes_[cls];
    const uint32_t in_chunk = number & ((uint32_t{1} << own.chunk_bits) - 1);
    return own.chunks[number >> own.chunk_bits].get() + in_chunk * words(cls);
  }
  size_t chunk_bytes(uint32_t cls) const {
    return (words(cls) * sizeof(uint64_t)) << classes_[cls].chunk_bits;
  }
  uint32_t take_block(uint32_t cls);
  void free_block(uint32_t ref);
  void resize(size_t partition, uint32_t cls);

  int shift_;                     // of a hash, to its partition
  std::vector<uint32_t> blocks_;  // by partition
  std::vector<Class> classes_;
  size_t size_ = 0, bytes_ = 0;
};

}  // namespace argosy::ps

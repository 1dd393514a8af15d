#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "argosy/ps/row_recipe.h"

namespace argosy::ps {

/// The rows of a shard that are in memory: slots of one size, in chunks that come and go as the
/// budget allows. Each slot has its row's key, where the same bytes lie on the disk, if they do,
/// and how much the row is wanted. Thread safety: none.
class TierSlots {
 public:
  static constexpr uint32_t kMostWanted = 3;

  TierSlots(size_t floats, size_t chunk_slots);

  static size_t slot_bytes(size_t floats) {
    return (kHead + floats * sizeof(float) + kAlign - 1) / kAlign * kAlign;
  }
  size_t chunk_bytes() const { return stride_ << chunk_bits_; }
  size_t chunks() const { return chunks_.size(); }
  size_t free() const { return free_.size(); }
  /// All there are, those of a closing chunk included.
  uint32_t slots() const { return static_cast<uint32_t>(chunks_.size() << chunk_bits_); }

  void grow();
  /// The last chunk gives out no more slots; once all of them are given back it goes.
  void close_last();
  bool closing() const { return closing_; }
  uint32_t first_of_closing() const {
    return static_cast<uint32_t>((chunks_.size() - 1) << chunk_bits_);
  }

  /// Zeroed, not on the disk, wanted once. Only if there is a free one.
  uint32_t take(Key key, Section section);
  void give_back(uint32_t slot);

  bool is_used(uint32_t slot) const { return (state(slot).word & kUsed) != 0; }
  Key key(uint32_t slot) const { return state(slot).key; }
  /// Whether the slot is there and holds that key.
  bool holds(uint32_t slot, Key key) const {
    return slot < slots() && is_used(slot) && this->key(slot) == key;
  }
  Section section(uint32_t slot) const {
    return (state(slot).word & kCounted) != 0 ? Section::counted : Section::rows;
  }
  void set_section(uint32_t slot, Section section) {
    uint64_t& word = state(slot).word;
    word = section == Section::rows ? word & ~kCounted : word | kCounted;
  }
  bool is_on_disk(uint32_t slot) const { return (state(slot).word & kOnDisk) != 0; }
  uint64_t place(uint32_t slot) const { return state(slot).word & kPlaceMask; }
  void set_place(uint32_t slot, uint64_t place) {
    uint64_t& word = state(slot).word;
    word = (word & ~kPlaceMask) | kOnDisk | place;
  }
  void forget_place(uint32_t slot) { state(slot).word &= ~(kOnDisk | kPlaceMask); }
  void want(uint32_t slot) {
    uint64_t& word = state(slot).word;
    if ((word & kWanted) != kWanted) word += kWantedOnce;
  }
  /// False: it was not wanted any more.
  bool want_less(uint32_t slot) {
    uint64_t& word = state(slot).word;
    if ((word & kWanted) == 0) return false;
    word -= kWantedOnce;
    return true;
  }
  float* image(uint32_t slot) const { return reinterpret_cast<float*>(base(slot) + kHead); }
  void prefetch(uint32_t slot) const {
    const std::byte* const at = base(slot);
    for (size_t line = 0; line < stride_; line += kLine) __builtin_prefetch(at + line);
  }

 private:
  struct State {
    Key key;
    uint64_t word;
  };
  static constexpr size_t kHead = sizeof(State), kAlign = 8, kLine = 64;
  static constexpr uint64_t kPlaceMask = (uint64_t{1} << 40) - 1;
  static constexpr uint64_t kUsed = uint64_t{1} << 63, kOnDisk = uint64_t{1} << 62,
                            kCounted = uint64_t{1} << 61, kWantedOnce = uint64_t{1} << 50,
                            kWanted = kMostWanted * kWantedOnce;

  std::byte* base(uint32_t slot) const {
    const uint32_t in_chunk = slot & ((uint32_t{1} << chunk_bits_) - 1);
    return chunks_[slot >> chunk_bits_].get() + in_chunk * stride_;
  }
  State& state(uint32_t slot) const { return *reinterpret_cast<State*>(base(slot)); }

  size_t stride_;
  int chunk_bits_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::vector<uint32_t> free_;
  bool closing_ = false;
  uint32_t closing_used_ = 0;
};

}  // namespace argosy::ps

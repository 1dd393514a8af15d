#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "argosy/base/key.h"

namespace argosy {

/// Numbers of different keys, in the order in which they first come; forgotten at once by the next
/// begin(), so there is no clearing between batches. Thread safety: none.
class KeyNumbering {
 public:
  /// Makes room for `most_keys` different keys.
  void begin(size_t most_keys) {
    const size_t wanted = std::bit_ceil(std::max<size_t>(2 * most_keys, 64));
    if (entries_.size() < wanted) {
      entries_.assign(wanted, {});
      shift_ = 64 - std::countr_zero(wanted);
      epoch_ = 0;
    }
    if (++epoch_ == 0) {  // wrapped round: old marks would count again
      std::ranges::fill(entries_, Entry{});
      epoch_ = 1;
    }
  }

  /// The number of a key, which is added to `keys` if it is new.
  int32_t number(Key key, std::vector<Key>& keys) {
    // The top bits of the product are well mixed.
    constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
    const size_t mask = entries_.size() - 1;
    for (size_t at = (key * kGoldenRatio) >> shift_;; at = (at + 1) & mask) {
      Entry& entry = entries_[at];
      if (entry.epoch != epoch_) {
        entry = {key, epoch_, static_cast<int32_t>(keys.size())};
        keys.push_back(key);
        return entry.number;
      }
      if (entry.key == key) return entry.number;
    }
  }

 private:
  struct Entry {
    Key key;
    uint32_t epoch;
    int32_t number;
  };
  std::vector<Entry> entries_;
  int shift_ = 64;
  uint32_t epoch_ = 0;
};

}  // namespace argosy

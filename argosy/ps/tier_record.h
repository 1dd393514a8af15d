#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "argosy/base/hash.h"
#include "argosy/base/key.h"
#include "argosy/ps/row_recipe.h"

namespace argosy::ps {

/// A row on the disk: its key, a sum, a stamp, and the floats of its image; a counted key has fewer
/// of them than there is room for. Rows of a table have one size, so a place is a segment and a
/// number in it.
struct TierRecord {
  static constexpr size_t kHead = sizeof(Key) + 2 * sizeof(uint32_t);
  static size_t bytes(size_t floats) { return kHead + floats * sizeof(float); }

  /// Which half of the table it belongs to, and how many shrinks its shard had seen: each one since
  /// then has aged it by one.
  struct Stamp {
    Section section = Section::rows;
    uint32_t shrinks = 0;
  };

  static Key key(const std::byte* record) {
    Key key;
    std::memcpy(&key, record, sizeof key);
    return key;
  }
  static Stamp stamp(const std::byte* record) {
    uint32_t word = 0;
    std::memcpy(&word, record + sizeof(Key) + sizeof word, sizeof word);
    return {(word & 1) == 0 ? Section::rows : Section::counted, word >> 1};
  }
  static const std::byte* floats(const std::byte* record) { return record + kHead; }

  /// All but the sum.
  static void write(std::byte* record, Key key, Stamp stamp, const float* image, size_t floats) {
    const uint32_t word = (stamp.shrinks << 1) | (stamp.section == Section::rows ? 0U : 1U);
    std::memcpy(record, &key, sizeof key);
    std::memcpy(record + sizeof key + sizeof word, &word, sizeof word);
    std::memcpy(record + kHead, image, floats * sizeof(float));
  }
  /// `place` is unique among all that was ever written to the table's folder, so that a record
  /// elsewhere does not pass.
  static uint32_t sum(std::span<const std::byte> record, uint64_t place) {
    const uint64_t body = hash64(record.subspan(sizeof(Key) + sizeof(uint32_t)), place);
    return static_cast<uint32_t>(mix(body ^ key(record.data())));
  }
  static void seal(std::span<std::byte> record, uint64_t place) {
    const uint32_t value = sum(record, place);
    std::memcpy(record.data() + sizeof(Key), &value, sizeof value);
  }
  static bool is_whole(std::span<const std::byte> record, uint64_t place) {
    uint32_t value = 0;
    std::memcpy(&value, record.data() + sizeof(Key), sizeof value);
    return value == sum(record, place);
  }
};

}  // namespace argosy::ps

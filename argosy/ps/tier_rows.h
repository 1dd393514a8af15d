#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "argosy/ps/row_recipe.h"
#include "argosy/ps/row_store.h"
#include "argosy/ps/tier_index.h"
#include "argosy/ps/tier_log.h"
#include "argosy/ps/tier_slots.h"

namespace argosy::ps {

/// How the memory of one shard is shared out, in bytes and rows.
struct TierSizes {
  size_t memory = 0;  // all of it
  size_t chunk = 0;   // rows found together, then used while they are in the cache
  size_t slots_of_chunk = 0, buffer_rows = 0, index_rows = 0, index_chunk = 0;
  uint32_t segment_rows = 0;

  /// For rows of so many floats.
  static TierSizes of(size_t memory, size_t floats);
  /// The least memory that can work.
  static size_t least(size_t floats);
};

/// The rows of one shard: some in slots, all others in the log or its buffers. Invariants:
///   1. Every key, row or counted, has exactly one entry of the index.
///   2. A slot that is on the disk has the same value there, or one that shrinks have made older
///      since; that record is live. What changes a row makes the record dead.
/// Nothing here reads or writes files. Thread safety: none.
class TierRows {
 public:
  static constexpr uint32_t kAbsent = ~uint32_t{0}, kCold = kAbsent - 1;  // no slots

  TierRows(const RowRecipe& recipe, TierFiles& files, const TierSizes& sizes);

  TierSlots& slots() { return slots_; }
  TierLog& log() { return log_; }
  size_t size(Section section) const { return sizes_[static_cast<size_t>(section)]; }
  size_t index_bytes() const { return index_.bytes(); }
  size_t memory() const { return memory_; }
  void set_memory(size_t bytes) { memory_ = bytes; }
  /// Chunks of slots for which there is memory.
  size_t most_chunks() const;

  float* image(uint32_t slot) const { return slots_.image(slot); }
  Section section(uint32_t slot) const { return slots_.section(slot); }

  void prefetch_block(uint64_t hash) const { index_.prefetch_block(hash); }
  void prefetch_entries(uint64_t hash) const { index_.prefetch_entries(hash); }
  void prefetch_slot(uint64_t hash);

  /// The key's slot, or kAbsent; or kCold, with the records that may be its own. Needs a free slot.
  uint32_t find(Key key, uint64_t hash, size_t position, std::vector<TierRead>& reads);
  /// As find(), but changes nothing; kCold without records: it is in a buffer.
  uint32_t look(Key key, uint64_t hash, size_t position, std::vector<TierRead>& reads);
  /// Puts a record that was read into a slot, unless it is not where the row is any more. Needs a
  /// free slot.
  void install(const TierRead& read, const std::byte* record);

  /// A slot of zeros for a key that is absent. Needs a free slot.
  uint32_t make(Key key, uint64_t hash, Section section);
  /// Its image is about to be changed.
  void change(uint32_t slot);
  void set_section(uint32_t slot, Section section);
  void erase(uint32_t slot);
  void want(uint32_t slot) { slots_.want(slot); }

  /// Takes the row that is wanted least out of its slot. False: it has to be written, and no buffer
  /// has room.
  bool evict_next();
  /// Empties the chunk that closes.
  bool empty_closing();
  /// Slots that evict_next() has looked at: a row that was wanted since `slots` of them is there.
  uint64_t turns() const { return turns_; }

  /// One more shrink: ages all rows, those in slots now and others when they are read.
  void age();

  /// A row, wherever it is.
  struct Copy {
    uint64_t hash = 0;
    Key key = 0;
    Section section = Section::rows;
    size_t at = 0;  // of its image in the floats
  };
  /// Copies of whole partitions from that of `from` on, at least `at_least`; records of those on
  /// the disk are left to be read, and aged by copy_of(). Returns where to go on; 0: that was all.
  uint64_t gather(uint64_t from, size_t at_least, std::vector<Copy>& copies,
                  std::vector<float>& images, std::vector<TierRead>& reads);
  uint32_t shrinks() const { return shrinks_; }
  /// Of a record, as it is after that many shrinks.
  static Copy copy_of(const RowRecipe& recipe, const std::byte* record, uint32_t shrinks,
                      std::vector<float>& images);
  /// Of a key's row, if it is in memory; else the records that may be its own are to be read.
  std::optional<Copy> copy(Key key, uint64_t hash, size_t position, std::vector<float>& images,
                           std::vector<TierRead>& reads);

  // For compaction:
  bool wants_compaction() const;
  /// Appends a record of a segment again, if it is live. Needs room in the log.
  void move(const std::byte* record, uint64_t place);
  /// A record got another place. False: nobody needs it.
  bool moved(Key key, uint64_t from, uint64_t to);
  /// Records written or dead since the last time.
  uint64_t take_debt() { return std::exchange(debt_, 0); }

 private:
  Copy copy_of(uint32_t slot, std::vector<float>& images) const;
  uint32_t load(TierIndex::Entry& entry, const std::byte* record, uint64_t place);
  bool evict(uint32_t slot);
  TierIndex::Entry* entry_of(uint32_t slot);

  const RowRecipe& recipe_;
  size_t memory_;
  const size_t width_;  // floats of an image, the larger one
  const size_t slack_rows_;
  TierIndex index_;
  TierSlots slots_;
  TierLog log_;
  size_t sizes_[2] = {0, 0};
  uint32_t hand_ = 0, shrinks_ = 0;
  uint64_t turns_ = 0, debt_ = 0;
};

}  // namespace argosy::ps

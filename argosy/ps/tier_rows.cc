#include "argosy/ps/tier_rows.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace argosy::ps {
namespace {

constexpr size_t kMostChunk = 256;
constexpr size_t kLeastChunk = 2;
constexpr size_t kLeastSlots = 32;
constexpr size_t kMostBuffer = size_t{256} << 10;
constexpr size_t kMostSegment = size_t{64} << 20;
constexpr size_t kMostIndexChunk = size_t{32} << 10;
constexpr size_t kMostSlotsChunk = size_t{1} << 20;
constexpr size_t kIndexBytes = 10;  // of a row, about
constexpr double kMostSpace = 1.4;  // rows on the disk for each live one

size_t width_of(const RowRecipe& recipe) {
  return std::max(recipe.floats(Section::rows), recipe.floats(Section::counted));
}

void catch_up(const RowRecipe& recipe, TierRecord::Stamp stamp, uint32_t shrinks, float* image) {
  if (!recipe.tracks_unseen()) return;
  for (uint32_t seen = stamp.shrinks; seen < shrinks; ++seen) recipe.age(stamp.section, image);
}

}  // namespace

size_t TierSizes::least(size_t floats) {
  return kLeastSlots * TierSlots::slot_bytes(floats) + (size_t{1} << 10);
}

TierSizes TierSizes::of(size_t memory, size_t floats) {
  const size_t slot = TierSlots::slot_bytes(floats), record = TierRecord::bytes(floats);
  TierSizes sizes{.memory = memory};
  sizes.buffer_rows = std::max<size_t>(4, std::min(memory / 32, kMostBuffer) / record);
  sizes.slots_of_chunk =
      std::bit_floor(std::max<size_t>(4, std::min(memory / 64, kMostSlotsChunk) / slot));
  sizes.chunk = std::clamp(memory / 16 / slot, kLeastChunk, kMostChunk);
  sizes.index_rows = memory / 2 / kIndexBytes;
  sizes.index_chunk = std::clamp<size_t>(memory / 512, 64, kMostIndexChunk);
  const size_t segment = std::min(memory / 2, kMostSegment) / record;
  sizes.segment_rows = static_cast<uint32_t>(
      std::clamp<size_t>(segment, 4 * sizes.buffer_rows, TierPlace::kMostRows - 1));
  return sizes;
}

TierRows::TierRows(const RowRecipe& recipe, TierFiles& files, const TierSizes& sizes)
    : recipe_(recipe),
      memory_(sizes.memory),
      width_(width_of(recipe)),
      slack_rows_(2 * sizes.buffer_rows),
      index_(sizes.index_rows, sizes.index_chunk),
      slots_(width_, sizes.slots_of_chunk),
      log_(files, TierRecord::bytes(width_), sizes.buffer_rows, sizes.segment_rows) {}

size_t TierRows::most_chunks() const {
  const size_t others = index_.bytes() + log_.buffer_bytes();
  return others >= memory_ ? 0 : (memory_ - others) / slots_.chunk_bytes();
}

void TierRows::prefetch_slot(uint64_t hash) {
  index_.find(hash, [&](TierIndex::Entry entry) {
    if (!TierIndex::is_hot(entry)) return false;
    slots_.prefetch(static_cast<uint32_t>(TierIndex::place(entry)));
    return true;
  });
}

uint32_t TierRows::find(Key key, uint64_t hash, size_t position, std::vector<TierRead>& reads) {
  const size_t before = reads.size();
  const std::byte* buffered = nullptr;
  TierIndex::Entry* const found = index_.find(hash, [&](TierIndex::Entry entry) {
    const uint64_t place = TierIndex::place(entry);
    if (TierIndex::is_hot(entry)) return slots_.key(static_cast<uint32_t>(place)) == key;
    const std::byte* const record = log_.buffered(place);
    if (record == nullptr) {
      reads.push_back(log_.read_of(place));
      reads.back().position = position;
      return false;
    }
    if (TierRecord::key(record) != key) return false;
    buffered = record;
    return true;
  });
  if (found == nullptr) return reads.size() == before ? kAbsent : kCold;
  reads.erase(reads.begin() + static_cast<ptrdiff_t>(before), reads.end());
  const uint64_t place = TierIndex::place(*found);
  return buffered == nullptr ? static_cast<uint32_t>(place) : load(*found, buffered, place);
}

uint32_t TierRows::look(Key key, uint64_t hash, size_t position, std::vector<TierRead>& reads) {
  const size_t before = reads.size();
  TierIndex::Entry* const found = index_.find(hash, [&](TierIndex::Entry entry) {
    const uint64_t place = TierIndex::place(entry);
    if (TierIndex::is_hot(entry)) return slots_.key(static_cast<uint32_t>(place)) == key;
    const std::byte* const record = log_.buffered(place);
    if (record != nullptr) return TierRecord::key(record) == key;
    reads.push_back(log_.read_of(place));
    reads.back().position = position;
    return false;
  });
  if (found == nullptr) return reads.size() == before ? kAbsent : kCold;
  reads.erase(reads.begin() + static_cast<ptrdiff_t>(before), reads.end());
  return TierIndex::is_hot(*found) ? static_cast<uint32_t>(TierIndex::place(*found)) : kCold;
}

void TierRows::install(const TierRead& read, const std::byte* record) {
  if (!log_.is_same(read)) return;
  const uint64_t hash = RowStore::hash(TierRecord::key(record));
  TierIndex::Entry* const entry = index_.find(hash, [&](TierIndex::Entry one) {
    return !TierIndex::is_hot(one) && TierIndex::place(one) == read.place;
  });
  if (entry != nullptr) load(*entry, record, read.place);
}

uint32_t TierRows::load(TierIndex::Entry& entry, const std::byte* record, uint64_t place) {
  const TierRecord::Stamp stamp = TierRecord::stamp(record);
  const uint32_t slot = slots_.take(TierRecord::key(record), stamp.section);
  std::memcpy(slots_.image(slot), TierRecord::floats(record), width_ * sizeof(float));
  catch_up(recipe_, stamp, shrinks_, slots_.image(slot));
  slots_.set_place(slot, place);
  TierIndex::move(entry, true, slot);
  return slot;
}

uint32_t TierRows::make(Key key, uint64_t hash, Section section) {
  const uint32_t slot = slots_.take(key, section);
  index_.insert(hash, true, slot);
  ++sizes_[static_cast<size_t>(section)];
  return slot;
}

void TierRows::change(uint32_t slot) {
  if (!slots_.is_on_disk(slot)) return;
  log_.dead(slots_.place(slot));
  slots_.forget_place(slot);
  ++debt_;
}

void TierRows::set_section(uint32_t slot, Section section) {
  --sizes_[static_cast<size_t>(slots_.section(slot))];
  ++sizes_[static_cast<size_t>(section)];
  slots_.set_section(slot, section);
}

TierIndex::Entry* TierRows::entry_of(uint32_t slot) {
  return index_.find(RowStore::hash(slots_.key(slot)), [&](TierIndex::Entry entry) {
    return TierIndex::is_hot(entry) && TierIndex::place(entry) == slot;
  });
}

void TierRows::erase(uint32_t slot) {
  change(slot);
  --sizes_[static_cast<size_t>(slots_.section(slot))];
  index_.erase(RowStore::hash(slots_.key(slot)), entry_of(slot));
  slots_.give_back(slot);
}

bool TierRows::evict_next() {
  for (;; ++hand_, ++turns_) {
    if (hand_ >= slots_.slots()) hand_ = 0;
    if (!slots_.is_used(hand_) || slots_.want_less(hand_)) continue;
    return evict(hand_);
  }
}

bool TierRows::evict(uint32_t slot) {
  uint64_t place = 0;
  if (slots_.is_on_disk(slot)) {
    place = slots_.place(slot);
  } else {
    if (!log_.has_room()) return false;
    TierRecord::write(log_.append(place), slots_.key(slot), {slots_.section(slot), shrinks_},
                      slots_.image(slot), width_);
    ++debt_;
  }
  TierIndex::move(*entry_of(slot), false, place);
  slots_.give_back(slot);
  return true;
}

bool TierRows::empty_closing() {
  const uint32_t first = slots_.first_of_closing(), end = slots_.slots();
  for (uint32_t slot = first; slot < end && slots_.closing(); ++slot)
    if (slots_.is_used(slot) && !evict(slot)) return false;
  return true;
}

void TierRows::age() {
  ++shrinks_;
  for (uint32_t slot = 0; slot < slots_.slots(); ++slot)
    if (slots_.is_used(slot)) recipe_.age(slots_.section(slot), slots_.image(slot));
}

TierRows::Copy TierRows::copy_of(const RowRecipe& recipe, const std::byte* record, uint32_t shrinks,
                                 std::vector<float>& images) {
  const size_t width = width_of(recipe);
  const TierRecord::Stamp stamp = TierRecord::stamp(record);
  const Key key = TierRecord::key(record);
  const Copy copy{
      .hash = RowStore::hash(key), .key = key, .section = stamp.section, .at = images.size()};
  images.resize(images.size() + width);
  std::memcpy(images.data() + copy.at, TierRecord::floats(record), width * sizeof(float));
  catch_up(recipe, stamp, shrinks, images.data() + copy.at);
  return copy;
}

TierRows::Copy TierRows::copy_of(uint32_t slot, std::vector<float>& images) const {
  const Key key = slots_.key(slot);
  const Copy copy{.hash = RowStore::hash(key),
                  .key = key,
                  .section = slots_.section(slot),
                  .at = images.size()};
  images.insert(images.end(), slots_.image(slot), slots_.image(slot) + width_);
  return copy;
}

std::optional<TierRows::Copy> TierRows::copy(Key key, uint64_t hash, size_t position,
                                             std::vector<float>& images,
                                             std::vector<TierRead>& reads) {
  const uint32_t slot = look(key, hash, position, reads);
  if (slot < kCold) return copy_of(slot, images);
  if (slot == kAbsent) return std::nullopt;
  std::optional<Copy> copy;
  index_.find(hash, [&](TierIndex::Entry entry) {
    if (TierIndex::is_hot(entry)) return false;
    const std::byte* const record = log_.buffered(TierIndex::place(entry));
    if (record == nullptr || TierRecord::key(record) != key) return false;
    copy = copy_of(recipe_, record, shrinks_, images);
    return true;
  });
  return copy;
}

uint64_t TierRows::gather(uint64_t from, size_t at_least, std::vector<Copy>& copies,
                          std::vector<float>& images, std::vector<TierRead>& reads) {
  size_t partition = index_.partition_of(from), met = 0;
  for (; partition < index_.partitions() && met < at_least; ++partition) {
    for (const TierIndex::Entry entry : index_.entries(partition)) {
      ++met;
      const uint64_t place = TierIndex::place(entry);
      if (TierIndex::is_hot(entry)) {
        copies.push_back(copy_of(static_cast<uint32_t>(place), images));
      } else if (const std::byte* const record = log_.buffered(place)) {
        copies.push_back(copy_of(recipe_, record, shrinks_, images));
      } else {
        reads.push_back(log_.read_of(place));
      }
    }
  }
  return partition == index_.partitions() ? 0 : index_.first_hash(partition);
}

bool TierRows::wants_compaction() const {
  return static_cast<double>(log_.rows()) >
         kMostSpace * static_cast<double>(log_.live()) + static_cast<double>(slack_rows_);
}

void TierRows::move(const std::byte* record, uint64_t place) {
  const Key key = TierRecord::key(record);
  TierIndex::Entry* const entry = index_.find(RowStore::hash(key), [&](TierIndex::Entry one) {
    return !TierIndex::is_hot(one) && TierIndex::place(one) == place;
  });
  if (entry == nullptr) {  // one that is in a slot is written when it leaves that
    const TierIndex::Entry* const hot = index_.find(RowStore::hash(key), [&](TierIndex::Entry one) {
      const auto slot = static_cast<uint32_t>(TierIndex::place(one));
      return TierIndex::is_hot(one) && slots_.is_on_disk(slot) && slots_.place(slot) == place;
    });
    if (hot != nullptr) change(static_cast<uint32_t>(TierIndex::place(*hot)));
    return;
  }
  uint64_t to = 0;
  std::memcpy(log_.append(to), record, TierRecord::bytes(width_));
  TierIndex::move(*entry, false, to);
  log_.dead(place);
}

bool TierRows::moved(Key key, uint64_t from, uint64_t to) {
  TierIndex::Entry* const entry = index_.find(RowStore::hash(key), [&](TierIndex::Entry one) {
    const uint64_t place = TierIndex::place(one);
    if (!TierIndex::is_hot(one)) return place == from;
    const auto slot = static_cast<uint32_t>(place);
    return slots_.is_on_disk(slot) && slots_.place(slot) == from;
  });
  if (entry == nullptr) return false;
  if (TierIndex::is_hot(*entry))
    slots_.set_place(static_cast<uint32_t>(TierIndex::place(*entry)), to);
  else
    TierIndex::move(*entry, false, to);
  return true;
}

}  // namespace argosy::ps

#include "argosy/ps/row_store.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <new>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

constexpr size_t kSlabBytes = size_t{256} << 10;

/// Whole cache lines where that costs little: a row of 9 weights with Adam's state and its key
/// takes 128 bytes instead of 116, and two lines instead of two or three.
size_t stride_of(size_t floats) {
  for (const size_t unit : {16, 4, 2}) {
    const size_t stride = (floats + unit - 1) / unit * unit;
    if (stride - floats <= floats / 8) return stride;
  }
  return floats;
}

}  // namespace

RowStore::RowStore(size_t floats, Arena& arena)
    : floats_(floats), stride_(stride_of(kKeyFloats + floats)), arena_(arena) {
  // Two at least: no row has number 0, and the first must lie in the first slab.
  const size_t rows = std::max<size_t>(2, kSlabBytes / (stride_ * sizeof(float)));
  slab_bits_ = std::bit_width(rows) - 1;
  directory_.push_back(new (arena_.take(sizeof(Segment))) Segment{});
  directory_[0]->limit = limit_of(0, 0);
}

float* RowStore::find(Key key, uint64_t hash) const {
  const uint32_t* slot = find_slot(key, hash);
  return slot == nullptr ? nullptr : row(*slot & kRowMask);
}

float* RowStore::insert(Key key, uint64_t hash) {
  assert(find_slot(key, hash) == nullptr);
  while (segment(hash).used >= segment(hash).limit) make_room(hash);
  const uint32_t number = new_row();
  float* const floats = row(number);
  std::memcpy(floats - kKeyFloats, &key, sizeof key);
  std::fill_n(floats, floats_, 0.0F);
  place(segment(hash), hash, number);
  ++size_;
  return floats;
}

void RowStore::erase(Key key, uint64_t hash) {
  uint32_t* const slot = find_slot(key, hash);
  if (slot == nullptr) return;
  free_.push_back(*slot & kRowMask);
  *slot = kErased;
  --size_;
}

void RowStore::find_all(std::span<const Probe> probes, std::span<const Key> keys, size_t floats,
                        std::span<float*> rows) const {
  // Three stages, each this many keys behind the one before: fetch the slots, fetch the row that
  // has the right bits of the hash, compare its key.
  constexpr size_t kAhead = 16;
  const size_t n = probes.size();
  for (size_t i = 0; i < n + 2 * kAhead; ++i) {
    if (i < n) {
      const uint64_t hash = probes[i].hash;
      __builtin_prefetch(&segment(hash).slots[home(hash)]);
    }
    if (i >= kAhead && i < n + kAhead) {
      float* const found = candidate(probes[i - kAhead].hash);
      rows[i - kAhead] = found;
      prefetch(found, floats);
    }
    if (i >= 2 * kAhead) {
      const Probe& probe = probes[i - 2 * kAhead];
      float*& found = rows[i - 2 * kAhead];
      const Key key = keys[probe.position];
      if (found != nullptr && key_of(found) != key) found = find(key, probe.hash);
    }
  }
}

void RowStore::for_each(FunctionRef<void(Key, float*)> visit) const {
  const Segment* before = nullptr;
  for (const Segment* segment : directory_) {
    if (segment == before) continue;  // the entries of one segment are neighbours
    before = segment;
    for (const uint32_t slot : segment->slots) {
      if (slot == kEmpty || slot == kErased) continue;
      float* const floats = row(slot & kRowMask);
      visit(key_of(floats), floats);
    }
  }
}

size_t RowStore::walk(uint64_t& place, size_t at_most,
                      FunctionRef<void(Key, const float*)> visit) const {
  size_t met = 0;
  for (; place < next_row_ - 1 && met < at_most; ++place) {
    const float* const floats = row(static_cast<uint32_t>(place + 1));  // row numbers begin at 1
    const Key key = key_of(floats);
    if (find(key, hash(key)) != floats) continue;  // erased, its place is not used again yet
    visit(key, floats);
    ++met;
  }
  return met;
}

/// The first row whose slot agrees in the bits of the hash: nearly always the key's own.
float* RowStore::candidate(uint64_t hash) const {
  const Segment& segment = this->segment(hash);
  const uint32_t wanted = tag(hash);
  for (uint32_t i = home(hash);; i = (i + 1) % kSlots) {
    const uint32_t slot = segment.slots[i];
    if (slot == kEmpty) return nullptr;
    if (tag_agrees(slot, wanted) && slot != kErased) return row(slot & kRowMask);
  }
}

uint32_t* RowStore::find_slot(Key key, uint64_t hash) const {
  Segment& segment = this->segment(hash);
  const uint32_t wanted = tag(hash);
  for (uint32_t i = home(hash);; i = (i + 1) % kSlots) {
    uint32_t& slot = segment.slots[i];
    if (slot == kEmpty) return nullptr;
    if (tag_agrees(slot, wanted) && slot != kErased && key_of(row(slot & kRowMask)) == key)
      return &slot;
  }
}

void RowStore::place(Segment& segment, uint64_t hash, uint32_t row) {
  uint32_t i = home(hash);
  while (segment.slots[i] != kEmpty && segment.slots[i] != kErased) i = (i + 1) % kSlots;
  if (segment.slots[i] == kEmpty) ++segment.used;
  segment.slots[i] = tag(hash) | row;
}

uint32_t RowStore::new_row() {
  if (!free_.empty()) {
    const uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  check<ConfigError>(next_row_ <= kMaxRows, "a shard of a table is full at ", kMaxRows,
                     " rows: give the table more shards");
  if (next_row_ >> slab_bits_ == slabs_.size()) {
    slabs_.reserve(slabs_.size() + 1);
    std::byte* const slab = arena_.take((stride_ << slab_bits_) * sizeof(float));
    slabs_.push_back(reinterpret_cast<float*>(slab) + kKeyFloats);
  }
  return next_row_++;
}

/// Equal for all hashes that share their first `depth` bits.
uint32_t RowStore::limit_of(uint64_t hash, uint32_t depth) {
  const uint64_t prefix = depth == 0 ? 0 : hash >> (64 - depth);
  return kMinLimit + static_cast<uint32_t>(mix(prefix * 64 + depth) % (kMaxLimit - kMinLimit + 1));
}

/// Takes erased slots out of the hash's segment, and splits it in two if that is not enough.
void RowStore::make_room(uint64_t hash) {
  struct Entry {
    uint64_t hash;
    uint32_t row;
  };
  Segment& full = segment(hash);
  std::array<Entry, kSlots> entries;
  size_t count = 0;
  for (const uint32_t slot : full.slots) {
    if (slot == kEmpty || slot == kErased) continue;
    entries[count++].row = slot & kRowMask;
    __builtin_prefetch(row(slot & kRowMask) - kKeyFloats);
  }
  for (Entry& entry : std::span(entries).first(count))
    entry.hash = RowStore::hash(key_of(row(entry.row)));

  Segment* sibling = count > full.limit / 2 ? &new_sibling(full, hash) : nullptr;
  full.used = 0;
  std::ranges::fill(full.slots, kEmpty);
  for (const Entry& entry : std::span(entries).first(count)) {
    const bool moves = sibling != nullptr && ((entry.hash >> (64 - full.depth)) & 1) != 0;
    place(moves ? *sibling : full, entry.hash, entry.row);
  }
}

/// An empty segment for those keys of `full` whose next bit of the hash is set.
RowStore::Segment& RowStore::new_sibling(Segment& full, uint64_t hash) {
  if (static_cast<int>(full.depth) == depth_) {
    // Keys spread evenly, so the directory has a few entries for each full segment; far more means
    // keys made to collide, which must not eat the memory.
    check<DataError>(directory_.size() <= 64 * (1 + size_ / kSlots), "the hashes of ", size_,
                     " keys agree in their first ", depth_, " bits");
    std::vector<Segment*> doubled(directory_.size() * 2);
    for (size_t i = 0; i < doubled.size(); ++i) doubled[i] = directory_[i / 2];
    directory_ = std::move(doubled);
    ++depth_;
  }
  auto* const sibling = new (arena_.take(sizeof(Segment))) Segment{};
  sibling->depth = ++full.depth;
  const uint64_t split_bit = uint64_t{1} << (64 - full.depth);
  full.limit = limit_of(hash & ~split_bit, full.depth);
  sibling->limit = limit_of(hash | split_bit, full.depth);
  const size_t span = size_t{1} << (depth_ - static_cast<int>(full.depth));
  const size_t first = (directory_index(hash) / (2 * span)) * 2 * span + span;
  std::fill_n(directory_.begin() + static_cast<ptrdiff_t>(first), span, sibling);
  return *sibling;
}

}  // namespace argosy::ps

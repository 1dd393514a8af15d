#include "argosy/ps/tier_shard.h"

#include <algorithm>
#include <array>
#include <exception>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

constexpr size_t kMostAtOnce = 256;      // probes
constexpr size_t kCompactedForDebt = 4;  // rows looked at for each that was written or died
constexpr size_t kMostCompacted = size_t{1} << 20;  // bytes at once
constexpr size_t kGathered = 4096;                  // rows of a walk at once

}  // namespace

TierShard::~TierShard() {
  files_.metrics->add_live(-static_cast<int64_t>(told_live_ * record_bytes_));
}

TierShard::TierShard(const RowRecipe& recipe, TierFiles& files, const TierSizes& sizes)
    : recipe_(recipe),
      files_(files),
      sizes_(sizes),
      record_bytes_(TierRecord::bytes(
          std::max(recipe.floats(Section::rows), recipe.floats(Section::counted)))),
      rows_(recipe, files, sizes) {}

void TierShard::refuse(size_t slots) {
  fail<ConfigError>(
      "table '", recipe_.spec().name, "': a shard has ", rows_.memory(),
      " bytes of memory, of which the index of its ",
      rows_.size(Section::rows) + rows_.size(Section::counted), " rows takes ", rows_.index_bytes(),
      " and the buffers ", rows_.log().buffer_bytes(), "; expected room for ", slots, " rows of ",
      rows_.slots().chunk_bytes() / sizes_.slots_of_chunk, " bytes: give it more memory");
}

/// Free slots, for which others may have to go.
void TierShard::make_room(size_t wanted) {
  for (;;) {
    TierSlots& slots = rows_.slots();
    const size_t most = rows_.most_chunks();
    if (most * sizes_.slots_of_chunk < wanted) refuse(wanted);
    if (slots.closing()) {
      if (!rows_.empty_closing()) flush();
    } else if (slots.chunks() > most) {
      slots.close_last();
    } else if (slots.free() >= wanted) {
      break;
    } else if (slots.chunks() < most) {
      slots.grow();
    } else if (!rows_.evict_next()) {
      flush();
    }
  }
  turns_ = rows_.turns();
  slots_ = rows_.slots().slots();
}

/// Writes a buffer, or waits for whoever does.
void TierShard::flush() {
  TierRows* const rows = &rows_;
  TierLog& log = rows_.log();
  if (log.is_writing()) {
    written_.wait(mutex_);
    return;
  }
  TierLog::Write write = log.begin_write();
  const auto dead = log.take_dead();  // on a full disk they make room
  std::exception_ptr trouble;
  {
    const Unlocked unlocked(mutex_);
    try {
      for (const auto& segment : dead) files_.env.remove_file(segment->path);
      write.run();
    } catch (...) {
      trouble = std::current_exception();
    }
  }
  if (trouble == nullptr)
    log.written(write);
  else
    log.not_written(
        [rows](Key key, uint64_t from, uint64_t to) { return rows->moved(key, from, to); });
  written_.notify_all();
  if (trouble != nullptr) std::rethrow_exception(trouble);
}

/// Looks up probes; those whose rows are known are `met`, with their slots and their numbers among
/// the probes. Returns how many.
size_t TierShard::find_all(std::span<const Probe> probes, std::span<const Key> keys,
                           std::span<uint64_t> hints, std::span<Probe> met,
                           std::span<uint32_t> slots, std::span<uint32_t> at,
                           std::vector<uint32_t>& cold, std::vector<TierRead>& reads) {
  std::array<uint32_t, kMostAtOnce> unknown;
  size_t count = 0, left = 0;
  const auto found = [&](size_t i, uint32_t slot) {
    met[count] = probes[i];
    at[count] = static_cast<uint32_t>(i);
    slots[count++] = slot;
    hints[i] = slot == TierRows::kAbsent ? 0 : uint64_t{slot} + 1;
  };
  for (size_t i = 0; i < probes.size(); ++i) {
    const auto slot = static_cast<uint32_t>(hints[i]) - 1;
    if (hints[i] != 0 && rows_.slots().holds(slot, keys[probes[i].position])) {
      found(i, slot);
      continue;
    }
    unknown[left++] = static_cast<uint32_t>(i);
    rows_.prefetch_block(probes[i].hash);
  }
  for (size_t i = 0; i < left; ++i) rows_.prefetch_entries(probes[unknown[i]].hash);
  for (size_t i = 0; i < left; ++i) rows_.prefetch_slot(probes[unknown[i]].hash);
  for (size_t i = 0; i < left; ++i) {
    const Probe& probe = probes[unknown[i]];
    const uint32_t slot = rows_.find(keys[probe.position], probe.hash, unknown[i], reads);
    if (slot == TierRows::kCold)
      cold.push_back(unknown[i]);
    else
      found(unknown[i], slot);
  }
  return count;
}

void TierShard::use(std::span<const Probe> probes, std::span<const Key> keys,
                    std::span<uint64_t> hints, Use each) {
  std::array<Probe, kMostAtOnce> met;
  std::array<uint32_t, kMostAtOnce> slots, at;
  std::vector<TierRead> reads;
  std::vector<uint32_t> cold;
  std::vector<Probe> again;
  std::vector<uint64_t> again_hints;
  std::vector<std::byte> records;
  const auto give = [&](std::span<const Probe> some, std::span<uint64_t> own) REQUIRES(mutex_) {
    cold.clear();
    reads.clear();
    const size_t count = find_all(some, keys, own, met, slots, at, cold, reads);
    each(rows_, std::span(met).first(count), std::span(slots).first(count));
    for (size_t i = 0; i < count; ++i)
      if (slots[i] < TierRows::kCold) own[at[i]] = uint64_t{slots[i]} + 1;
  };
  for (size_t first = 0; first < probes.size(); first += sizes_.chunk) {
    const size_t n = std::min(sizes_.chunk, probes.size() - first);
    {
      const Lock lock(mutex_);
      make_room(n);
      give(probes.subspan(first, n), hints.subspan(first, n));
    }
    again.clear();
    for (const uint32_t i : cold) again.push_back(probes[first + i]);
    while (!again.empty()) {
      files_.metrics->misses.add(again.size());
      read_records(files_, record_bytes_, reads, records);
      again_hints.assign(again.size(), 0);
      const Lock lock(mutex_);
      make_room(reads.size() + again.size());
      for (size_t i = 0; i < reads.size(); ++i)
        rows_.install(reads[i], records.data() + i * record_bytes_);
      give(again, again_hints);
      for (size_t i = 0; i < cold.size(); ++i) again[i] = again[cold[i]];
      again.resize(cold.size());
    }
  }
  tidy();
}

void TierShard::find_cold(std::span<const Probe> probes, std::span<const Key> keys,
                          std::span<uint64_t> hints, size_t at_most, std::vector<TierRead>& reads) {
  const Lock lock(mutex_);
  size_t hits = 0;
  const size_t most = reads.size() + at_most;
  for (size_t first = 0; first < probes.size() && reads.size() < most; first += kMostAtOnce) {
    const std::span<const Probe> some =
        probes.subspan(first, std::min(kMostAtOnce, probes.size() - first));
    for (const Probe& probe : some) rows_.prefetch_block(probe.hash);
    for (const Probe& probe : some) rows_.prefetch_entries(probe.hash);
    for (const Probe& probe : some) rows_.prefetch_slot(probe.hash);
    for (size_t i = 0; i < some.size(); ++i) {
      const uint32_t slot = rows_.look(keys[some[i].position], some[i].hash, first + i, reads);
      hints[first + i] = slot < TierRows::kCold ? uint64_t{slot} + 1 : 0;
      if (slot >= TierRows::kCold) continue;
      rows_.want(slot);
      ++hits;
    }
  }
  files_.metrics->hits.add(hits);
  turns_ = rows_.turns();
}

void TierShard::fetch(std::span<TierRead> reads) {
  std::vector<std::byte> records;
  sort_reads(reads);
  files_.metrics->misses.add(reads.size());
  for (size_t first = 0; first < reads.size(); first += sizes_.chunk) {
    const auto some = reads.subspan(first, std::min(sizes_.chunk, reads.size() - first));
    read_records(files_, record_bytes_, some, records);
    const Lock lock(mutex_);
    make_room(some.size());
    for (size_t i = 0; i < some.size(); ++i)
      rows_.install(some[i], records.data() + i * record_bytes_);
  }
  tidy();
}

bool TierShard::keeps_since(uint64_t before) const { return turns_ - before < slots_; }

size_t TierShard::most_fetched() const { return std::max<size_t>(sizes_.chunk, slots_ / 2); }

void TierShard::set_memory(size_t bytes) {
  const Lock lock(mutex_);
  rows_.set_memory(bytes);
}

void TierShard::fit() {
  const Lock lock(mutex_);
  make_room(0);
}

size_t TierShard::room() {
  const Lock lock(mutex_);
  return rows_.most_chunks() * sizes_.slots_of_chunk;
}

size_t TierShard::size(Section section) const {
  const Lock lock(mutex_);
  return rows_.size(section);
}

bool TierShard::walk(Section section, uint64_t& from, size_t& at_most,
                     FunctionRef<void(Key, const float*)> visit) {
  std::vector<TierRows::Copy> copies;
  std::vector<float> images;
  std::vector<TierRead> reads;
  std::vector<std::byte> records;
  while (at_most > 0) {
    copies.clear();
    images.clear();
    reads.clear();
    uint64_t next = 0;
    uint32_t shrinks = 0;
    {
      const Lock lock(mutex_);
      next = rows_.gather(from, std::min(at_most, kGathered), copies, images, reads);
      shrinks = rows_.shrinks();
    }
    read_records(files_, record_bytes_, reads, records);
    for (size_t i = 0; i < reads.size(); ++i)
      copies.push_back(
          TierRows::copy_of(recipe_, records.data() + i * record_bytes_, shrinks, images));
    std::ranges::sort(copies, {}, &TierRows::Copy::hash);
    for (const TierRows::Copy& copy : copies) {
      if (copy.hash < from || copy.section != section) continue;
      if (at_most == 0) {
        from = copy.hash;
        return false;
      }
      visit(copy.key, images.data() + copy.at);
      --at_most;
    }
    from = next;
    if (next == 0) return true;
  }
  return false;
}

void TierShard::read(Section section, std::span<const Probe> probes, std::span<const Key> keys,
                     FunctionRef<void(size_t, const float*)> found) {
  std::vector<TierRead> reads;
  std::vector<std::byte> records;
  std::vector<float> images;
  for (size_t first = 0; first < probes.size(); first += kGathered) {
    const auto some = probes.subspan(first, std::min(kGathered, probes.size() - first));
    reads.clear();
    uint32_t shrinks = 0;
    {
      const Lock lock(mutex_);
      shrinks = rows_.shrinks();
      for (const Probe& probe : some) {
        images.clear();
        const std::optional<TierRows::Copy> copy =
            rows_.copy(keys[probe.position], probe.hash, probe.position, images, reads);
        if (copy && copy->section == section) found(probe.position, images.data());
      }
    }
    read_records(files_, record_bytes_, reads, records);
    for (size_t i = 0; i < reads.size(); ++i) {
      images.clear();
      const TierRows::Copy copy =
          TierRows::copy_of(recipe_, records.data() + i * record_bytes_, shrinks, images);
      if (copy.key == keys[reads[i].position] && copy.section == section)
        found(reads[i].position, images.data());
    }
  }
}

/// Rows that are used meanwhile are young again and stay.
size_t TierShard::shrink(uint32_t unseen) {
  {
    const Lock lock(mutex_);
    rows_.age();
  }
  const auto limit = static_cast<float>(unseen);
  size_t erased = 0;
  for (const Section section : {Section::rows, Section::counted}) {
    if (recipe_.floats(section) == 0) continue;
    const size_t age_at = section == Section::rows ? 0 : 1;
    uint64_t from = 0;
    for (bool ended = false; !ended;) {
      std::vector<Key> old;
      size_t page = kGathered;
      ended = walk(section, from, page, [&](Key key, const float* image) {
        if (image[age_at] >= limit) old.push_back(key);
      });
      std::vector<Probe> probes;
      std::vector<uint64_t> hints(old.size());
      for (size_t i = 0; i < old.size(); ++i)
        probes.push_back({RowStore::hash(old[i]), static_cast<uint32_t>(i)});
      use(probes, old, hints,
          [&](TierRows& rows, std::span<const Probe>, std::span<uint32_t> slots) {
            for (uint32_t& slot : slots) {
              if (slot == TierRows::kAbsent || rows.section(slot) != section) continue;
              if (rows.image(slot)[age_at] < limit) continue;
              rows.erase(slot);
              slot = TierRows::kAbsent;
              erased += section == Section::rows ? 1 : 0;
            }
          });
    }
  }
  return erased;
}

/// Called where rows were changed, without the lock: keeps the disk from filling with dead records.
void TierShard::tidy() {
  std::vector<std::shared_ptr<TierSegment>> dead;
  {
    const Lock lock(mutex_);
    if (!compacting_ && rows_.wants_compaction()) {
      compacting_ = true;
      try {
        compact();
      } catch (const IoError&) {  // who needs the room finds out
      } catch (...) {
        compacting_ = false;
        throw;
      }
      compacting_ = false;
    }
    dead = rows_.log().take_dead();
    const uint64_t live = rows_.log().live();
    const uint64_t before = std::exchange(told_live_, live);
    if (live != before)
      files_.metrics->add_live(static_cast<int64_t>(live - before) *
                               static_cast<int64_t>(record_bytes_));
  }
  for (const auto& segment : dead) files_.env.remove_file(segment->path);
}

void TierShard::compact() {
  const size_t most = std::max<size_t>(1, kMostCompacted / record_bytes_);
  size_t left = std::min<size_t>(kCompactedForDebt * rows_.take_debt() + sizes_.chunk, 4 * most);
  while (left > 0) {
    if (compaction_ && !rows_.log().is_there(compaction_->segment, compaction_->file))
      compaction_.reset();
    if (!compaction_) {
      const std::optional<uint32_t> segment = rows_.log().emptiest();
      if (!segment || !rows_.wants_compaction()) return;
      compaction_ = {.segment = *segment,
                     .file = rows_.log().read_of(TierPlace{*segment, 0}.packed()).segment,
                     .next = 0};
    }
    const uint32_t end = rows_.log().rows_of(compaction_->segment);
    const size_t n = std::min<size_t>({left, most, end - compaction_->next});
    if (n == 0) {  // it has live rows that did not come by: they cannot be read
      rows_.log().spare(compaction_->segment);
      compaction_.reset();
      continue;
    }
    left -= n;
    compact_some(n);
  }
}

/// The next rows of the segment, as long as it is there.
void TierShard::compact_some(size_t n) {
  const Compaction now = *compaction_;
  const TierRead first = rows_.log().read_of(TierPlace{now.segment, now.next}.packed());
  std::vector<std::byte> records(n * record_bytes_);
  {
    const Unlocked unlocked(mutex_);
    first.file->read_at(now.next * uint64_t{record_bytes_}, records);
  }
  files_.metrics->read_bytes.add(records.size());
  for (uint32_t i = 0; i < n; ++i) {
    while (!rows_.log().has_room()) flush();
    if (!rows_.log().is_there(now.segment, now.file)) return;
    const std::span<const std::byte> record =
        std::span(records).subspan(i * record_bytes_, record_bytes_);
    if (TierRecord::is_whole(record, now.file->seed(now.next + i)))
      rows_.move(record.data(), TierPlace{now.segment, now.next + i}.packed());
  }
  compaction_->next += static_cast<uint32_t>(n);
}

}  // namespace argosy::ps

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/ps/tier_metrics.h"
#include "argosy/ps/tier_record.h"

namespace argosy::ps {

/// Where a record is: its segment, by a number that is used again once the segment is gone, and its
/// number there.
struct TierPlace {
  static constexpr int kRowBits = 22;
  static constexpr uint32_t kMostRows = uint32_t{1} << kRowBits, kMostSegments = uint32_t{1} << 18;
  uint32_t segment = 0, row = 0;
  uint64_t packed() const { return (uint64_t{segment} << kRowBits) | row; }
  static TierPlace of(uint64_t packed) {
    return {static_cast<uint32_t>(packed >> kRowBits),
            static_cast<uint32_t>(packed) & (kMostRows - 1)};
  }
};

/// What all shards of a table share: where its files are, how they are called, and what is counted.
struct TierFiles {
  TierFiles(Env& world, std::string paths, std::shared_ptr<TierMetrics> counters)
      : env(world), prefix(std::move(paths)), metrics(std::move(counters)) {}

  Env& env;
  const std::string prefix;  // of their paths: folder and table
  const std::shared_ptr<TierMetrics> metrics;
  std::atomic<uint64_t> last_number = 0;

  std::string path(uint64_t number) const;
  /// Removes all files of the table. Throws IoError.
  void remove_all();
};

/// A file of records. Its reading end is replaced when it has grown; whoever reads keeps the one it
/// has, and the file goes with the last of them.
struct TierSegment {
  uint64_t number = 0;
  std::string path;
  std::unique_ptr<WritableFile> out = {};  // of whoever writes; null: it was given up, or is sealed
  uint64_t seed(uint32_t row) const { return number << 32 | row; }
};

/// A record that is read without a lock, and what of it must still hold when it is used.
struct TierRead {
  std::shared_ptr<const TierSegment> segment;
  std::shared_ptr<ReadableFile> file;
  uint64_t place = 0;
  size_t position = 0;  // the caller's

  uint32_t row() const { return TierPlace::of(place).row; }
};

/// The records of one shard on the disk: segments that are only appended to, and two buffers, one
/// that is filled while the other is written. Thread safety: none, but TierWrite is used without
/// the lock that protects the rest.
class TierLog {
 public:
  TierLog(TierFiles& files, size_t record_bytes, size_t buffer_rows, uint32_t segment_rows);
  ~TierLog();

  bool has_room() const { return filling_.rows < room_; }
  /// A record to be filled in, all but its sum. It counts as live. Only if there is room.
  std::byte* append(uint64_t& place);
  /// The record of a place that has not been written yet; null: it is on the disk.
  std::byte* buffered(uint64_t place);
  TierRead read_of(uint64_t place) const;
  bool is_same(const TierRead& read) const;

  /// A buffer on its way to the disk. run() needs no lock and throws IoError.
  struct Write {
    TierFiles& files;
    std::shared_ptr<TierSegment> segment;
    std::span<std::byte> bytes;
    size_t record_bytes;
    uint32_t first_row;
    std::shared_ptr<ReadableFile> file = {};  // afterwards
    void run();
  };
  bool is_writing() const { return is_writing_; }
  /// Takes what was filled, or what could not be written; is_writing() until one of the next two.
  Write begin_write();
  void written(Write& write);
  /// The segment is given up: its records that are in buffers get other places, moved(key, before,
  /// after).
  template <class Moved>
  void not_written(const Moved& moved);

  /// The record is not needed any more.
  void dead(uint64_t place);
  /// Those whose records are all dead. They go once nobody holds them.
  std::vector<std::shared_ptr<TierSegment>> take_dead() { return std::exchange(dead_, {}); }

  // For compaction:
  uint64_t rows() const { return rows_; }  // dead ones included
  uint64_t live() const { return live_; }
  /// The segment with the smallest share of live records, unless nearly all of them are.
  std::optional<uint32_t> emptiest() const;
  uint32_t rows_of(uint32_t segment) const { return segments_[segment].rows; }
  bool is_there(uint32_t segment, const std::shared_ptr<const TierSegment>& file) const {
    return segments_[segment].file == file;
  }
  /// It is not to be compacted: something in it cannot be read.
  void spare(uint32_t segment) { segments_[segment].spared = true; }
  size_t buffer_bytes() const { return 2 * record_bytes_ * buffer_rows_; }

 private:
  struct Segment {
    std::shared_ptr<TierSegment> file = {};  // null: the number is free
    std::shared_ptr<ReadableFile> reading = {};
    uint32_t rows = 0, live = 0;
    bool spared = false;
  };
  /// Rows of one segment.
  struct Buffer {
    uint32_t segment = 0, first = 0, rows = 0;
    std::vector<std::byte> bytes = {};
    bool has(TierPlace place) const {
      return place.segment == segment && place.row - first < rows && place.row >= first;
    }
  };
  uint32_t new_segment();
  void fill_next();
  void bury_if_dead(uint32_t segment);
  bool is_open(uint32_t segment) const {
    return segment == filling_.segment || (writing_.rows > 0 && segment == writing_.segment);
  }

  TierFiles& files_;
  const size_t record_bytes_, buffer_rows_;
  const uint32_t segment_rows_;
  std::vector<Segment> segments_;
  std::vector<uint32_t> free_;
  std::vector<std::shared_ptr<TierSegment>> dead_;
  Buffer filling_, writing_;
  uint32_t most_rows_;  // of its segment
  uint32_t room_ = 0;   // of filling_
  bool is_writing_ = false;
  uint64_t rows_ = 0, live_ = 0;
};

/// By place, as the disk likes them.
void sort_reads(std::span<TierRead> reads);
/// Reads records, those that lie close to each other at once: record i is at to[i * record_bytes],
/// by the order of sort_reads(). Throws DataError naming file and offset of one that is damaged.
void read_records(TierFiles& files, size_t record_bytes, std::span<TierRead> reads,
                  std::vector<std::byte>& to);

template <class Moved>
void TierLog::not_written(const Moved& moved) {
  is_writing_ = false;
  const uint32_t before = writing_.segment, after = new_segment();
  segments_[before].file->out.reset();
  uint32_t next = 0;
  for (Buffer* const buffer : {&writing_, &filling_}) {
    if (buffer->segment != before) continue;
    const uint32_t first = std::exchange(buffer->first, next);
    buffer->segment = after;
    for (uint32_t i = 0; i < buffer->rows; ++i, ++next) {
      const uint64_t from = TierPlace{before, first + i}.packed();
      const uint64_t to = TierPlace{after, next}.packed();
      const bool is_live =
          moved(TierRecord::key(buffer->bytes.data() + i * record_bytes_), from, to);
      segments_[after].live += is_live ? 1 : 0;
      segments_[before].live -= is_live ? 1 : 0;
    }
    segments_[after].rows += buffer->rows;
    segments_[before].rows -= buffer->rows;
  }
  fill_next();
  bury_if_dead(before);
}

}  // namespace argosy::ps

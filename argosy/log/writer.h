#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/log/format.h"
#include "argosy/log/reader.h"

namespace argosy {

/// What a record survives once commit() has returned.
enum class Durability {
  none,     // nothing: it may lie in a buffer until later ones push it out, or seal()
  journal,  // kill -9 of the process: the system has its bytes
  fsync,    // the machine going down: the disk has them
};

struct LogOptions {
  std::string folder;
  std::string identity;  // opaque: what the log belongs to; another log's folder is refused
  Durability durability = Durability::journal;
  uint64_t segment_bytes = uint64_t{64} << 20;  // a segment of that size takes no more records
};

/// Appends atomic records to a log. One record at a time: begin_record(), frames, commit().
///
/// 1. Frames go to the file as they come; a record counts when its commit frame is whole. Records
///    have the numbers 1, 2, ... without gaps, and none spans two segments.
/// 2. A segment gets its name when its header is on the disk, so one with a name has a whole
/// header.
/// 3. A segment that is left is never written again: sealed, synced with its footer, or given up at
///    the end of its last good record, which the catalogue of the next one says.
/// 4. After a failed sync the segment is given up and nothing is synced in it again. Records of it
///    that were not synced before are gone, last_durable() falls accordingly, and the numbers above
///    it are given anew. In journal and none these can be records whose commit() had returned.
/// 5. After a failed append the open record is gone, and nothing else: what was committed is cut
/// off
///    and synced. If that fails too, 4 holds.
/// 6. Whatever throws IoError leaves a writer that can be used: the next record begins a segment.
///
/// Thread safety: none.
class LogWriter {
 public:
  /// To go on behind what read_log() found; use open_log().
  LogWriter(Env& env, LogOptions options, LogContents contents);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// Throws IoError where a segment has to be sealed or begun and cannot be.
  void begin_record();
  /// One frame of all parts together, kMaxLogFrame at most. Returns where its payload lies.
  LogPlace add_frame(uint32_t kind, std::span<const std::span<const std::byte>> parts);
  LogPlace add_frame(uint32_t kind, std::span<const std::byte> payload);
  /// The number of the record, which is as durable as the options say.
  uint64_t commit();
  /// Drops the open record, if there is one: its frames stay, behind them a frame that says so.
  void abandon();

  /// The last record that counts, as durable as the options say. Where it falls behind what
  /// commit() had returned, the records above it must be written anew.
  uint64_t last_durable() const { return next_record_ - 1; }
  /// Those that count, by number; the last may be the one that is written to.
  const std::vector<LogSegment>& segments() const { return segments_; }

  /// Ends the segment that is written to: it is on the disk and is never written or truncated
  /// again, in any mode. Hard links of all segments() are then a log of their own. Does nothing
  /// where nothing was written since the last time.
  void seal();
  /// Takes a segment other than the one that is written to out of the log. The log says so durably
  /// before the file goes: a crash leaves it in or out, never missing.
  void remove_segment(uint64_t number);

 private:
  /// A place between records.
  struct Mark {
    uint64_t record = 0, offset = 0;
  };
  struct Active;

  void begin_segment();
  void put(std::span<const std::byte> bytes);
  void put_frame(LogFrameHeader header, std::span<const std::span<const std::byte>> parts);
  template <class T>
  void put_control(LogRole role, const T& payload);
  template <class T>
  void put_synced(LogRole role, const T& payload);
  void flush();
  void sync();
  void leave_behind(const std::string& path, uint64_t synced);
  void give_up(Mark end);
  void give_up_after_append();
  void update_listing();
  void remove_retired();
  void check_open(const char* what) const;
  void check_between(const char* what) const;

  Env& env_;
  const LogOptions options_;
  std::vector<LogSegment> segments_;  // the active one last
  std::vector<uint64_t> retired_;  // files to remove once a new segment's catalogue is without them
  uint64_t last_number_, next_record_;
  LogPlace synced_;  // what commits tell of it
  uint64_t synced_record_;
  std::unique_ptr<Active> active_;
};

/// Replays a log (read_log() has the rules), cuts off what is torn and opens it for writing; the
/// next record begins a new segment. A folder without a log becomes one with the first record.
/// Records behind `last` are not delivered, and are no part of the log once the next record is
/// there.
std::unique_ptr<LogWriter> open_log(Env& env, LogOptions options, LogVisitor visit,
                                    uint64_t last = UINT64_MAX);

}  // namespace argosy

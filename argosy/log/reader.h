#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/function_ref.h"
#include "argosy/log/format.h"

namespace argosy {

class LogSegmentFile;

/// Where the payload of a frame lies.
struct LogPlace {
  uint64_t segment = 0, offset = 0;
};

struct LogFrame {
  uint32_t kind = 0;
  std::span<const std::byte> payload;
  LogPlace place;  // of the payload
};

/// A record that is known to be complete, all its sums checked, to be read frame by frame.
class LogRecord {
 public:
  LogRecord(LogSegmentFile& file, uint64_t number, uint64_t begin, uint64_t end)
      : file_(file), number_(number), at_(begin), end_(end) {}
  uint64_t number() const { return number_; }
  /// Where what comes behind it begins in its segment.
  uint64_t end() const { return end_ + sizeof(LogFrameHeader) + sizeof(LogCommit); }
  /// Its payload is good until the next call; nothing after the last frame.
  std::optional<LogFrame> next();

 private:
  LogSegmentFile& file_;
  uint64_t number_, at_, end_;
};

/// Called with each record, in the order of their numbers.
using LogVisitor = FunctionRef<void(LogRecord&)>;

/// What a log's folder holds.
struct LogContents {
  std::vector<LogSegment> segments;  // those that count; the last may be torn behind its bytes
  uint64_t last_record = 0;
  uint64_t last_number = 0;  // of all segment files
  std::vector<uint64_t>
      retired;  // segment files that the log does not need; nothing is lost with them
};

/// Reads a log and changes nothing. A folder that is absent or has no segments is an empty log.
///
/// 1. A record is delivered whole or not at all: its frames are read and checked once, up to the
///    commit, and then read again for the visitor. Buffers take 17 MB at most, whatever a record's
///    size.
/// 2. The segments that count are those in the catalogue of the last one, and the last one, without
///    those that its removal frames name. Each of them must be there.
/// 3. Only behind the last record of the last segment may bytes be wrong, and only if no frame of a
///    later record follows them: a later one is begun when the one before it has been committed, so
///    what is wrong was whole. Everything else throws DataError with file, offset, what is there
///    and what was expected. What a visitor got before that is to be thrown away.
/// 4. Frames of the same record may follow a wrong place: a machine that goes down keeps some
///    blocks of what was not synced and loses others.
LogContents read_log(Env& env, const std::string& folder, const std::string& identity,
                     LogVisitor visit);

std::string log_segment_path(const std::string& folder, uint64_t number);

}  // namespace argosy

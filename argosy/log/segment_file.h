#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/log/reader.h"

namespace argosy {

/// A segment being read: its header, and the frames behind it.
class LogSegmentFile {
 public:
  /// Throws DataError if it is not segment `number` of the log of that identity.
  LogSegmentFile(Env& env, const std::string& folder, uint64_t number, const std::string& identity);

  const LogSegmentHeader& header() const { return header_; }
  const std::string& path() const { return path_; }
  uint64_t size() const { return file_->size(); }
  uint64_t header_bytes() const { return header_bytes_; }

  /// A frame, or why there is none at that offset.
  struct Found {
    LogFrameHeader header;
    std::span<const std::byte> payload;  // good until the next read
    std::string problem;                 // empty: there is a frame
  };
  Found frame_at(uint64_t offset, uint64_t limit);

  /// What was met on the way through a segment.
  struct Walk {
    uint64_t end = 0;   // of the last frame that does not belong to a record without an end
    uint64_t stop = 0;  // where it went no further
    uint64_t next_record = 1;
    bool sealed = false;
    std::string problem;  // at `stop`; empty: the segment, up to the limit, was read
    std::vector<uint64_t> removed;
  };
  /// Goes through the frames before `limit` and delivers each record once it has seen its commit.
  /// Throws DataError for frames that are whole and cannot be where they are.
  Walk walk(uint64_t limit, LogVisitor visit);

  /// A whole frame header of a later record, anywhere from `offset` on.
  std::optional<LogFrameHeader> later_frame(uint64_t offset, uint64_t record);

  template <class... Parts>
  [[noreturn]] void refuse(uint64_t offset, const Parts&... parts) const {
    fail<DataError>(path_, ": offset ", offset, ": ", parts...);
  }

 private:
  class Walker;

  std::span<const std::byte> view(uint64_t offset, uint64_t n, uint64_t limit);

  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  uint64_t header_bytes_ = 0;
  LogSegmentHeader header_;
  uint64_t seed_ = 0;
  std::vector<std::byte> window_;
  uint64_t window_at_ = 0;
};

}  // namespace argosy

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The bytes of a log, decoded and encoded, without files: docs/formats/log.md has them as a table.
namespace argosy {

/// Bytes of a frame's payload, at most.
constexpr size_t kMaxLogFrame = size_t{16} << 20;

/// A segment of a log, as its files are called outside of this layer: `bytes` of the file count,
/// and hold the records first_record to last_record; last_record is first_record - 1 if it has
/// none.
struct LogSegment {
  uint64_t number = 0;
  uint64_t first_record = 1, last_record = 0;
  uint64_t bytes = 0;
  bool sealed = false;  // ends in a footer, is on the disk, and is never written again

  bool operator==(const LogSegment&) const = default;
};

/// What a frame is for.
enum class LogRole : uint32_t {
  data = 1,     // a part of a record: the caller's bytes
  commit = 2,   // the record counts
  abandon = 3,  // the frames of its record before it do not count
  removal = 4,  // a segment, named in the payload, is no longer part of the log
  footer = 5,   // the segment is complete; `record` is the one that would come next
};

/// What stands before every payload. Its sum covers the fields and starts from a seed that only one
/// segment of one log has, so bytes of another, which a recycled block may hold, do not pass.
struct LogFrameHeader {
  uint32_t magic = 0;
  LogRole role = LogRole::data;
  uint32_t kind = 0;  // the caller's, of data
  uint32_t length = 0;
  uint64_t segment = 0;
  uint64_t record = 0;
  uint64_t index = 0;  // of the frame in its record, from 0; an abandoned record goes on counting
  uint64_t payload_sum = 0;
  uint64_t sum = 0;
};
static_assert(sizeof(LogFrameHeader) == 56);

/// The payload of LogRole::commit. The synced fields say what the writer knew to be on the disk
/// when it wrote this.
struct LogCommit {
  uint64_t frames = 0, bytes = 0;  // data frames and their payloads since the last abandon
  uint64_t synced_record = 0, synced_segment = 0, synced_offset = 0;
};

/// The payload of LogRole::footer.
struct LogFooter {
  uint64_t first_record = 0, last_record = 0;
  uint64_t offset = 0;  // of the footer's own header
  uint64_t sums = 0;    // chain_log_sums over the frames before it
};

/// What a segment begins with. The catalogue lists the earlier segments of which the log consisted
/// when this one was begun, by number; those that are not in it are not part of the log.
struct LogSegmentHeader {
  uint64_t segment = 0;
  uint64_t first_record = 1;
  uint64_t salt = 0;  // random: a log that was deleted and begun anew has other sums
  std::string identity;
  std::vector<LogSegment> catalogue;
};

std::string log_segment_name(uint64_t number);
/// The number in a name such as "0000000042.seg".
std::optional<uint64_t> log_segment_number(const std::string& name);

std::vector<std::byte> encode_log_header(const LogSegmentHeader& header);

/// The first bytes of a segment, which say how long its header is.
constexpr size_t kLogPrefix = 24;
/// Throws DataError, naming `what`, if they do not begin a segment of this format's version.
uint64_t log_header_bytes(std::span<const std::byte> prefix, const std::string& what);
/// All log_header_bytes() of it. Throws DataError naming `what` where anything is wrong.
LogSegmentHeader decode_log_header(std::span<const std::byte> bytes, const std::string& what);

/// Where the sums of a segment's frames start from.
uint64_t log_seed(const LogSegmentHeader& header);
/// The sum of a payload in one or more parts.
uint64_t log_payload_sum(std::span<const std::span<const std::byte>> parts);
/// Fills in magic and sum.
void seal_log_frame(LogFrameHeader& header, uint64_t seed);
/// The header that bytes begin with; nothing if they do not begin with one of that seed.
std::optional<LogFrameHeader> find_log_frame(std::span<const std::byte> bytes, uint64_t seed);
/// Offset of the first place in `bytes` at which find_log_frame may succeed.
std::optional<size_t> find_log_magic(std::span<const std::byte> bytes);
/// The sums of a segment's frames, folded one by one.
uint64_t chain_log_sums(uint64_t chain, uint64_t sum);

}  // namespace argosy

#include "argosy/log/segment_file.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"
#include "argosy/base/hash.h"

namespace argosy {
namespace {

constexpr uint64_t kReadAhead = uint64_t{1} << 20;
constexpr uint64_t kHead = sizeof(LogFrameHeader);

template <class... Parts>
std::string joined(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

}  // namespace

LogSegmentFile::LogSegmentFile(Env& env, const std::string& folder, uint64_t number,
                               const std::string& identity)
    : path_(log_segment_path(folder, number)), file_(env.open_file(path_)) {
  std::vector<std::byte> bytes(std::min<uint64_t>(kLogPrefix, size()));
  file_->read_at(0, bytes);
  header_bytes_ = log_header_bytes(bytes, path_);
  check<DataError>(header_bytes_ <= size(), path_, ": ends at ", size(), ", in its header of ",
                   header_bytes_, " bytes");
  bytes.resize(header_bytes_);
  file_->read_at(0, bytes);
  header_ = decode_log_header(bytes, path_);
  check<DataError>(header_.identity == identity, path_, ": belongs to the log of '",
                   header_.identity, "', expected '", identity, "'");
  check<DataError>(header_.segment == number, path_, ": holds segment ", header_.segment,
                   ", expected ", number);
  seed_ = log_seed(header_);
}

std::span<const std::byte> LogSegmentFile::view(uint64_t offset, uint64_t n, uint64_t limit) {
  if (offset < window_at_ || offset + n > window_at_ + window_.size()) {
    window_.resize(std::min(std::max(n, kReadAhead), limit - offset));
    window_at_ = offset;
    try {
      file_->read_at(offset, window_);
    } catch (...) {
      window_.clear();
      throw;
    }
  }
  return std::span<const std::byte>(window_).subspan(offset - window_at_, n);
}

LogSegmentFile::Found LogSegmentFile::frame_at(uint64_t offset, uint64_t limit) {
  Found found;
  const uint64_t left = limit - offset;
  if (left < kHead) {
    found.problem = joined(left, " bytes are left, too few for a frame");
    return found;
  }
  const auto header = find_log_frame(view(offset, kHead, limit), seed_);
  if (!header) {
    found.problem = "no frame of this segment begins here";
    return found;
  }
  found.header = *header;
  if (header->length > kMaxLogFrame)
    refuse(offset, "a frame of ", header->length, " bytes, expected at most ", kMaxLogFrame);
  if (header->length > left - kHead) {
    found.problem =
        joined("a frame of ", header->length, " bytes, of which ", left - kHead, " are there");
    return found;
  }
  found.payload = view(offset, kHead + header->length, limit).subspan(kHead);
  if (hash64(found.payload) != header->payload_sum)
    found.problem =
        joined("the checksum of a frame of ", header->length, " bytes does not fit its payload");
  return found;
}

/// One way through a segment.
class LogSegmentFile::Walker {
 public:
  Walker(LogSegmentFile& file, uint64_t limit, LogVisitor visit)
      : file_(file), limit_(limit), visit_(visit), at_(file.header_bytes()) {
    walk_.next_record = file.header().first_record;
    walk_.end = begin_ = at_;
  }

  Walk run() {
    while (at_ < limit_ && step()) {
    }
    walk_.stop = at_;
    return std::move(walk_);
  }

 private:
  bool step() {
    const Found found = file_.frame_at(at_, limit_);
    walk_.problem = found.problem;
    if (!found.problem.empty()) return false;
    take(found);
    return true;
  }

  void take(const Found& found) {
    const LogFrameHeader& header = found.header;
    if (walk_.sealed) file_.refuse(at_, "a frame, expected the end of a sealed segment");
    if (header.record != walk_.next_record || header.index != index_)
      file_.refuse(at_, "frame ", header.index, " of record ", header.record, ", expected frame ",
                   index_, " of record ", walk_.next_record);
    const uint64_t next = at_ + kHead + header.length;
    ++index_;
    switch (header.role) {
      case LogRole::data:
        ++frames_;
        bytes_ += header.length;
        break;
      case LogRole::commit:
        commit(found);
        break;
      case LogRole::abandon:
        break;
      case LogRole::removal:
        check_between_records("a removal");
        walk_.removed.push_back(payload_of<uint64_t>(found, "a removal"));
        break;
      case LogRole::footer:
        check_between_records("a footer");
        end_with(found);
        break;
      default:
        file_.refuse(at_, "a frame of role ", static_cast<uint32_t>(header.role),
                     ", expected 1 to 5");
    }
    sums_ = chain_log_sums(sums_, header.sum);
    at_ = next;
    if (header.role == LogRole::data) return;
    walk_.end = begin_ = at_;
    frames_ = bytes_ = 0;
  }

  template <class T>
  T payload_of(const Found& found, const char* what) const {
    if (found.payload.size() != sizeof(T))
      file_.refuse(at_, what, " of ", found.payload.size(), " bytes, expected ", sizeof(T));
    T value;
    std::memcpy(&value, found.payload.data(), sizeof(T));
    return value;
  }

  void check_between_records(const char* what) const {
    if (frames_ > 0)
      file_.refuse(at_, what, " within record ", walk_.next_record, ", expected its commit");
  }

  void commit(const Found& found) {
    const auto commit = payload_of<LogCommit>(found, "a commit");
    if (commit.frames != frames_ || commit.bytes != bytes_)
      file_.refuse(at_, "record ", walk_.next_record, " has ", frames_, " frames with ", bytes_,
                   " bytes, its commit expects ", commit.frames, " with ", commit.bytes);
    LogRecord record(file_, walk_.next_record, begin_, at_);
    if (visit_) visit_(record);
    ++walk_.next_record;
    index_ = 0;
  }

  void end_with(const Found& found) {
    const auto footer = payload_of<LogFooter>(found, "a footer");
    const uint64_t first = file_.header().first_record, last = walk_.next_record - 1;
    if (footer.first_record != first || footer.last_record != last || footer.offset != at_ ||
        footer.sums != sums_)
      file_.refuse(at_, "a footer of records ", footer.first_record, " to ", footer.last_record,
                   " before offset ", footer.offset, " with sum ", footer.sums, ", but there are ",
                   first, " to ", last, " with sum ", sums_);
    walk_.sealed = true;
  }

  LogSegmentFile& file_;
  const uint64_t limit_;
  const LogVisitor visit_;
  Walk walk_;
  uint64_t at_, begin_;  // the next frame; the first one of the record
  uint64_t index_ = 0, frames_ = 0, bytes_ = 0, sums_ = 0;
};

LogSegmentFile::Walk LogSegmentFile::walk(uint64_t limit, LogVisitor visit) {
  return Walker(*this, limit, visit).run();
}

std::optional<LogFrameHeader> LogSegmentFile::later_frame(uint64_t offset, uint64_t record) {
  while (offset + kHead <= size()) {
    const auto bytes = view(offset, std::min(kReadAhead, size() - offset), size());
    size_t at = 0;
    while (at + kHead <= bytes.size()) {
      const auto magic = find_log_magic(bytes.subspan(at));
      at = magic ? at + *magic : bytes.size() - 3;  // where one may begin that ends behind them
      const auto header = find_log_frame(bytes.subspan(at), seed_);
      if (header && header->record > record) return header;
      if (at + kHead <= bytes.size()) ++at;
    }
    offset += at;
  }
  return {};
}

std::optional<LogFrame> LogRecord::next() {
  if (at_ == end_) return {};
  const auto found = file_.frame_at(at_, end_);
  if (!found.problem.empty()) file_.refuse(at_, found.problem, ", and a moment ago there was one");
  const LogPlace place{found.header.segment, at_ + kHead};
  at_ = place.offset + found.payload.size();
  return LogFrame{found.header.kind, found.payload, place};
}

}  // namespace argosy

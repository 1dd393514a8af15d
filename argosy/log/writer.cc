#include "argosy/log/writer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"

namespace argosy {
namespace {

constexpr size_t kBuffer = size_t{256} << 10;

std::string parent_of(const std::string& folder) {
  const auto parent = std::filesystem::path(folder).parent_path();
  return parent.empty() ? "." : parent.string();
}

/// Takes the records behind `last`, which ends at `end` of its segment, out of the contents. Their
/// bytes stay where they are: the catalogue of the next segment is without them.
void cut_behind(uint64_t last, uint64_t end, LogContents& contents) {
  if (contents.last_record <= last) return;
  std::vector<LogSegment>& segments = contents.segments;
  for (; !segments.empty() && segments.back().first_record > last; segments.pop_back())
    contents.retired.push_back(segments.back().number);
  contents.last_record = last;
  if (segments.empty() || segments.back().last_record <= last) return;
  segments.back().last_record = last;
  segments.back().bytes = end;
  segments.back().sealed = false;
}

}  // namespace

/// The segment that is written to.
struct LogWriter::Active {
  std::unique_ptr<WritableFile> file;
  uint64_t number = 0, first_record = 1, seed = 0;
  uint64_t header_bytes = 0;
  uint64_t offset = 0;            // of the next byte, buffered ones included
  std::vector<std::byte> buffer;  // not handed to the file yet
  Mark committed, written, synced;
  uint64_t sums = 0;
  uint64_t index = 0;              // of the next frame in record next_record_
  bool open = false;               // a record
  uint64_t frames = 0, bytes = 0;  // of it
};

LogWriter::LogWriter(Env& env, LogOptions options, LogContents contents)
    : env_(env),
      options_(std::move(options)),
      segments_(std::move(contents.segments)),
      retired_(std::move(contents.retired)),
      last_number_(contents.last_number),
      next_record_(contents.last_record + 1),
      synced_record_(contents.last_record) {
  if (segments_.empty()) return;
  const LogSegment last = segments_.back();
  synced_ = {last.number, last.bytes};
  if (last.last_record >= last.first_record || last.sealed) return;
  // Its file goes when a new segment says that it is not needed.
  retired_.push_back(last.number);
  segments_.pop_back();
}

LogWriter::~LogWriter() = default;

void LogWriter::check_open(const char* what) const {
  check<Error>(active_ != nullptr && active_->open, options_.folder, ": ", what,
               " of a record, but none is open");
}

void LogWriter::check_between(const char* what) const {
  check<Error>(active_ == nullptr || !active_->open, options_.folder, ": ", what,
               " within a record, expected it to be committed or abandoned before");
}

void LogWriter::begin_record() {
  check_between("a record begins");
  if (active_ != nullptr && active_->offset >= options_.segment_bytes) seal();
  if (active_ == nullptr) begin_segment();
  active_->open = true;
  active_->frames = active_->bytes = 0;
}

LogPlace LogWriter::add_frame(uint32_t kind, std::span<const std::byte> payload) {
  return add_frame(kind, std::span(&payload, 1));
}

LogPlace LogWriter::add_frame(uint32_t kind, std::span<const std::span<const std::byte>> parts) {
  check_open("a frame");
  uint64_t length = 0;
  for (const auto& part : parts) length += part.size();
  check<DataError>(length <= kMaxLogFrame, options_.folder, ": a frame of ", length,
                   " bytes, expected at most ", kMaxLogFrame);
  const LogPlace place{active_->number, active_->offset + sizeof(LogFrameHeader)};
  try {
    put_frame({.role = LogRole::data, .kind = kind, .length = static_cast<uint32_t>(length)},
              parts);
  } catch (const IoError&) {
    give_up_after_append();
    throw;
  }
  ++active_->frames;
  active_->bytes += length;
  return place;
}

uint64_t LogWriter::commit() {
  check_open("the commit");
  try {
    put_control(LogRole::commit, LogCommit{.frames = active_->frames,
                                           .bytes = active_->bytes,
                                           .synced_record = synced_record_,
                                           .synced_segment = synced_.segment,
                                           .synced_offset = synced_.offset});
    if (options_.durability != Durability::none) flush();
  } catch (const IoError&) {
    give_up_after_append();
    throw;
  }
  active_->open = false;
  active_->index = 0;
  const uint64_t record = next_record_++;
  active_->committed = {record, active_->offset};
  if (active_->buffer.empty()) active_->written = active_->committed;
  if (options_.durability == Durability::fsync) sync();
  update_listing();
  return record;
}

void LogWriter::abandon() {
  if (active_ == nullptr || !active_->open) return;
  active_->open = false;
  if (active_->frames == 0) return;
  try {
    put_frame({.role = LogRole::abandon}, {});
  } catch (const IoError&) {
    give_up_after_append();  // which drops it as well
  }
}

/// A frame between two records, on the disk on return.
template <class T>
void LogWriter::put_synced(LogRole role, const T& payload) {
  try {
    put_control(role, payload);
    flush();
  } catch (const IoError&) {
    give_up_after_append();
    throw;
  }
  active_->committed = {next_record_ - 1, active_->offset};
  sync();
}

void LogWriter::seal() {
  check_between("the end of a segment");
  if (active_ == nullptr || active_->offset == active_->header_bytes) return;
  put_synced(LogRole::footer, LogFooter{.first_record = active_->first_record,
                                        .last_record = next_record_ - 1,
                                        .offset = active_->offset,
                                        .sums = active_->sums});
  update_listing();
  segments_.back().sealed = true;
  active_ = nullptr;
}

void LogWriter::remove_segment(uint64_t number) {
  check_between("the removal of a segment");
  const auto is_it = [&](const LogSegment& segment) { return segment.number == number; };
  check<Error>(
      std::ranges::any_of(segments_, is_it) && (active_ == nullptr || active_->number != number),
      options_.folder, ": segment ", number, " to be removed, but it is ",
      active_ != nullptr && active_->number == number ? "being written to" : "not there");
  if (active_ == nullptr) begin_segment();
  put_synced(LogRole::removal, number);
  std::erase_if(segments_, is_it);
  update_listing();
  retired_.push_back(number);
  remove_retired();
}

void LogWriter::begin_segment() {
  if (last_number_ == 0) {  // the folder may be there and not be durable yet
    env_.make_directories(options_.folder);
    env_.sync_folder(parent_of(options_.folder));
  }
  auto active = std::make_unique<Active>();
  active->number = ++last_number_;
  active->first_record = next_record_;
  const LogSegmentHeader fields{.segment = active->number,
                                .first_record = next_record_,
                                .salt = env_.random(),
                                .identity = options_.identity,
                                .catalogue = segments_};
  active->seed = log_seed(fields);
  const std::vector<std::byte> header = encode_log_header(fields);
  active->header_bytes = active->offset = header.size();
  active->committed = active->written = active->synced = {next_record_ - 1, active->offset};
  const std::string path = log_segment_path(options_.folder, active->number);
  const std::string beside = path + ".new";
  check<IoError>(!env_.file_exists(path), "create ", path, ": File exists");
  env_.remove_file(beside);  // of a process that was killed here
  try {
    active->file = env_.create_new_file(beside);
    active->file->append(header);
    active->file->sync();
    env_.rename_file(beside, path);
  } catch (const IoError&) {
    // If the file has its name and nobody knows, it is a segment without records that no later
    // catalogue has: its number is not used again.
    active->file = nullptr;
    try {
      env_.remove_file(beside);
    } catch (const IoError&) {  // the space it takes is all that is lost
    }
    throw;
  }
  active_ = std::move(active);
  remove_retired();
}

void LogWriter::remove_retired() {
  for (const uint64_t number : std::exchange(retired_, {})) {
    try {
      env_.remove_file(log_segment_path(options_.folder, number));
    } catch (const IoError&) {  // it is not part of the log: the next opening finds it again
    }
  }
}

void LogWriter::put_frame(LogFrameHeader header,
                          std::span<const std::span<const std::byte>> parts) {
  header.segment = active_->number;
  header.record = next_record_;
  header.index = active_->index++;
  header.payload_sum = log_payload_sum(parts);
  seal_log_frame(header, active_->seed);
  active_->sums = chain_log_sums(active_->sums, header.sum);
  put(std::as_bytes(std::span(&header, 1)));
  for (const auto& part : parts) put(part);
}

template <class T>
void LogWriter::put_control(LogRole role, const T& payload) {
  const auto bytes = std::as_bytes(std::span(&payload, 1));
  put_frame({.role = role, .length = sizeof(T)}, std::span(&bytes, 1));
}

void LogWriter::put(std::span<const std::byte> bytes) {
  Active& active = *active_;
  if (active.buffer.size() + bytes.size() > kBuffer) flush();
  if (bytes.size() > kBuffer)
    active.file->append(bytes);
  else
    active.buffer.insert(active.buffer.end(), bytes.begin(), bytes.end());
  active.offset += bytes.size();
}

void LogWriter::flush() {
  if (active_->buffer.empty()) return;
  active_->file->append(active_->buffer);
  active_->buffer.clear();
  active_->written = active_->committed;
}

void LogWriter::sync() {
  try {
    active_->file->sync();
  } catch (const IoError&) {
    const std::string path = log_segment_path(options_.folder, active_->number);
    const uint64_t synced = active_->synced.offset;
    active_->file = nullptr;
    give_up(active_->synced);
    if (options_.durability == Durability::fsync) leave_behind(path, synced);
    throw;
  }
  active_->written = active_->synced = active_->committed;
  synced_ = {active_->number, active_->synced.offset};
  synced_record_ = active_->synced.record;
}

/// In fsync nothing that was promised lies behind the last sync, so nobody should find it there:
/// not by the catalogue of a new segment, nor, where no segment can be begun, in the file itself.
/// Else a process that opens the log could take for durable what only the system's memory has. In
/// journal what the system still has is kept until it is written anew.
void LogWriter::leave_behind(const std::string& path, uint64_t synced) {
  try {
    env_.truncate_file(path, synced);
  } catch (const IoError&) {  // whether that is on the disk does not matter
  }
  try {
    begin_segment();
  } catch (const IoError&) {  // the next record tries again
  }
}

void LogWriter::give_up_after_append() {
  const Mark written = active_->written, synced = active_->synced;
  active_->file = nullptr;
  Mark end = synced;
  try {
    env_.truncate_file(log_segment_path(options_.folder, active_->number), written.offset);
    end = written;
    synced_ = {active_->number, end.offset};
    synced_record_ = end.record;
  } catch (const IoError&) {  // the caller hears of the append
  }
  give_up(end);
}

/// Leaves the segment; of it counts what lies before `end`.
void LogWriter::give_up(Mark end) {
  active_->open = false;
  active_->committed = end;
  next_record_ = end.record + 1;
  update_listing();
  if (segments_.empty() || segments_.back().number != active_->number)
    retired_.push_back(active_->number);
  active_ = nullptr;
}

/// Brings the active segment's entry up to date; it has none while it has no records and no end.
void LogWriter::update_listing() {
  if (!segments_.empty() && segments_.back().number == active_->number) segments_.pop_back();
  const LogSegment entry{.number = active_->number,
                         .first_record = active_->first_record,
                         .last_record = active_->committed.record,
                         .bytes = active_->committed.offset};
  if (entry.bytes > active_->header_bytes) segments_.push_back(entry);
}

std::unique_ptr<LogWriter> open_log(Env& env, LogOptions options, LogVisitor visit, uint64_t last) {
  uint64_t end = 0;  // of the record `last` in its segment
  LogContents contents = read_log(env, options.folder, options.identity, [&](LogRecord& record) {
    if (record.number() > last) return;
    end = record.end();
    if (visit) visit(record);
  });
  if (!contents.segments.empty()) {
    // Also where nothing is to be cut: its bytes may be known to the system alone, and what was
    // delivered must not vanish later.
    const LogSegment& newest = contents.segments.back();
    env.truncate_file(log_segment_path(options.folder, newest.number), newest.bytes);
  }
  cut_behind(last, end, contents);
  return std::make_unique<LogWriter>(env, std::move(options), std::move(contents));
}

}  // namespace argosy

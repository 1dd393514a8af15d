#include "argosy/ps/tier_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

constexpr size_t kGap = size_t{4} << 10;         // bytes between records that are read along
constexpr size_t kMostRead = size_t{256} << 10;  // bytes at once
constexpr uint64_t kSegments = 16;  // of live records at most, about: each is an open file
constexpr std::string_view kEnding = ".tier";
constexpr size_t kNumberDigits = 10;  // in a file's name

}  // namespace

std::string TierFiles::path(uint64_t number) const {
  return fmt::format("{}.{:0{}}{}", prefix, number, kNumberDigits, kEnding);
}

void TierFiles::remove_all() {
  const std::filesystem::path all(prefix);
  const std::string folder = all.parent_path().string(), name = all.filename().string() + ".";
  if (!env.file_exists(folder)) return;
  for (const std::string& file : env.list_files(folder)) {
    const std::string_view number =
        std::string_view(file).substr(std::min(name.size(), file.size()));
    const bool own = file.starts_with(name) && number.size() == kNumberDigits + kEnding.size() &&
                     number.ends_with(kEnding) &&
                     std::ranges::all_of(number.substr(0, kNumberDigits),
                                         [](char c) { return c >= '0' && c <= '9'; });
    if (own) env.remove_file(fmt::format("{}/{}", folder, file));
  }
}

TierLog::TierLog(TierFiles& files, size_t record_bytes, size_t buffer_rows, uint32_t segment_rows)
    : files_(files),
      record_bytes_(record_bytes),
      buffer_rows_(buffer_rows),
      segment_rows_(segment_rows),
      most_rows_(segment_rows) {
  filling_.bytes.resize(record_bytes * buffer_rows);
  writing_.bytes.resize(record_bytes * buffer_rows);
  filling_.segment = new_segment();
  fill_next();
}

/// Nobody could make sense of the files without the index.
TierLog::~TierLog() {
  for (const Segment& segment : segments_)
    if (segment.reading != nullptr) dead_.push_back(segment.file);
  for (const auto& segment : dead_) try {
      files_.env.remove_file(segment->path);
    } catch (...) {  // the next run removes them
      break;
    }
}

uint32_t TierLog::new_segment() {
  uint32_t id = 0;
  if (free_.empty()) {
    check<IoError>(segments_.size() < TierPlace::kMostSegments, files_.prefix, ": ",
                   segments_.size(), " segments at once, which is the most there can be");
    id = static_cast<uint32_t>(segments_.size());
    segments_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  const uint64_t number = ++files_.last_number;
  segments_[id].file =
      std::make_shared<TierSegment>(TierSegment{.number = number, .path = files_.path(number)});
  return id;
}

/// Says where the next records go.
void TierLog::fill_next() {
  if (filling_.rows == 0) {
    const uint32_t rows = segments_[filling_.segment].rows;
    filling_.first = rows;
    if (rows >= most_rows_) {
      filling_.segment = new_segment();
      filling_.first = 0;
      most_rows_ = static_cast<uint32_t>(
          std::clamp<uint64_t>(live_ / kSegments, segment_rows_, TierPlace::kMostRows - 1));
    }
  }
  room_ = std::min(static_cast<uint32_t>(buffer_rows_), most_rows_ - filling_.first);
}

std::byte* TierLog::append(uint64_t& place) {
  place = TierPlace{filling_.segment, filling_.first + filling_.rows}.packed();
  std::byte* const record = filling_.bytes.data() + filling_.rows++ * record_bytes_;
  Segment& segment = segments_[filling_.segment];
  ++segment.rows;
  ++segment.live;
  ++rows_;
  ++live_;
  return record;
}

std::byte* TierLog::buffered(uint64_t packed) {
  const TierPlace place = TierPlace::of(packed);
  for (Buffer* const buffer : {&filling_, &writing_})
    if (buffer->has(place))
      return buffer->bytes.data() + (place.row - buffer->first) * record_bytes_;
  return nullptr;
}

TierRead TierLog::read_of(uint64_t place) const {
  const Segment& segment = segments_[TierPlace::of(place).segment];
  return {.segment = segment.file, .file = segment.reading, .place = place};
}

bool TierLog::is_same(const TierRead& read) const {
  return is_there(TierPlace::of(read.place).segment, read.segment);
}

void TierLog::Write::run() {
  if (segment->out == nullptr) {
    files.env.make_directories(std::filesystem::path(segment->path).parent_path().string());
    segment->out = files.env.create_new_file(segment->path);
  }
  for (uint32_t i = 0; i * record_bytes < bytes.size(); ++i)
    TierRecord::seal(bytes.subspan(i * record_bytes, record_bytes), segment->seed(first_row + i));
  segment->out->append(bytes);
  file = files.env.open_file(segment->path);
  files.metrics->written_bytes.add(bytes.size());
}

TierLog::Write TierLog::begin_write() {
  if (writing_.rows == 0) {
    std::swap(writing_, filling_);
    filling_.segment = writing_.segment;
    filling_.rows = 0;
    fill_next();
  }
  is_writing_ = true;
  return {.files = files_,
          .segment = segments_[writing_.segment].file,
          .bytes = std::span(writing_.bytes).first(writing_.rows * record_bytes_),
          .record_bytes = record_bytes_,
          .first_row = writing_.first};
}

void TierLog::written(Write& write) {
  is_writing_ = false;
  writing_.rows = 0;
  Segment& segment = segments_[writing_.segment];
  segment.reading = std::move(write.file);
  if (is_open(writing_.segment)) return;
  segment.file->out.reset();
  bury_if_dead(writing_.segment);
}

void TierLog::dead(uint64_t place) {
  const uint32_t segment = TierPlace::of(place).segment;
  --segments_[segment].live;
  --live_;
  bury_if_dead(segment);
}

void TierLog::bury_if_dead(uint32_t id) {
  Segment& segment = segments_[id];
  if (segment.live > 0 || is_open(id)) return;
  rows_ -= segment.rows;
  dead_.push_back(std::move(segment.file));
  segment = {};
  free_.push_back(id);
}

std::optional<uint32_t> TierLog::emptiest() const {
  std::optional<uint32_t> found;
  double least = 0.9;
  for (uint32_t id = 0; id < segments_.size(); ++id) {
    const Segment& segment = segments_[id];
    if (segment.file == nullptr || segment.spared || segment.rows == 0 || is_open(id)) continue;
    const double share = static_cast<double>(segment.live) / segment.rows;
    if (share >= least) continue;
    least = share;
    found = id;
  }
  return found;
}

void sort_reads(std::span<TierRead> reads) {
  std::ranges::sort(
      reads, {}, [](const TierRead& read) { return std::pair(read.segment->number, read.row()); });
}

void read_records(TierFiles& files, size_t record_bytes, std::span<TierRead> reads,
                  std::vector<std::byte>& to) {
  sort_reads(reads);
  to.resize(reads.size() * record_bytes);
  thread_local std::vector<std::byte> piece;
  const auto offset = [&](const TierRead& read) { return read.row() * uint64_t{record_bytes}; };
  for (size_t first = 0, end = 0; first < reads.size(); first = end) {
    const uint64_t begin = offset(reads[first]);
    for (end = first + 1; end < reads.size(); ++end) {
      if (reads[end].segment != reads[first].segment) break;
      if (offset(reads[end]) > offset(reads[end - 1]) + record_bytes + kGap) break;
      if (offset(reads[end]) + record_bytes - begin > kMostRead) break;
    }
    piece.resize(offset(reads[end - 1]) + record_bytes - begin);
    // The newest handle: an older one may end before the last of them.
    const auto newest = std::ranges::max_element(
        reads.begin() + static_cast<ptrdiff_t>(first), reads.begin() + static_cast<ptrdiff_t>(end),
        {}, [](const TierRead& read) { return read.file->size(); });
    newest->file->read_at(begin, piece);
    files.metrics->read_bytes.add(piece.size());
    for (size_t i = first; i < end; ++i) {
      const std::span<const std::byte> record =
          std::span(piece).subspan(offset(reads[i]) - begin, record_bytes);
      if (!TierRecord::is_whole(record, reads[i].segment->seed(reads[i].row())))
        fail<DataError>(reads[i].segment->path, ": offset ", offset(reads[i]), ": a row of ",
                        record_bytes, " bytes does not fit its sum");
      std::ranges::copy(record, to.begin() + static_cast<ptrdiff_t>(i * record_bytes));
    }
  }
}

}  // namespace argosy::ps

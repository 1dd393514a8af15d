// The file of a part, little-endian: magic, u32 version, the fields of CutPart one after the other,
// u64 XXH3 of all bytes before it.
#include "argosy/ps/cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/log/reader.h"
#include "argosy/log/segment_file.h"
#include "argosy/ps/archive.h"
#include "argosy/ps/journal_frames.h"
#include "argosy/ps/shard.h"
#include "argosy/ps/table_file.h"

namespace argosy::ps {
namespace {

constexpr std::array<char, 8> kCutMagic{'A', 'R', 'G', 'O', 'C', 'U', 'T', '\n'};
constexpr uint32_t kCutVersion = 1;
constexpr std::string_view kCutEnding = ".cut";
constexpr uint64_t kLastFrame = sizeof(LogFrameHeader) + sizeof(LogFooter);

/// Of a segment's header, which no other has, and of its end: the footer of a sealed one holds the
/// sums of all frames.
uint64_t segment_sum(ReadableFile& file, const std::string& path, uint64_t bytes) {
  check<DataError>(file.size() >= bytes && bytes > kLogPrefix, path, ": has ", file.size(),
                   " bytes, expected ", bytes);
  std::vector<std::byte> header(kLogPrefix);
  file.read_at(0, header);
  header.resize(std::min(log_header_bytes(header, path), bytes));
  file.read_at(0, header);
  std::vector<std::byte> end(std::min(kLastFrame, bytes));
  file.read_at(bytes - end.size(), end);
  return hash64(end, hash64(header));
}

void copy_segment(Env& env, ReadableFile& from, uint64_t bytes, const std::string& to) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  const auto file = env.create_new_file(to);
  std::vector<std::byte> piece;
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    piece.resize(std::min(kPiece, bytes - at));
    from.read_at(at, piece);
    file->append(piece);
  }
  file->sync();
}

/// A table in memory, as its file would be.
class TableBytes final : public ByteReader, public ByteSink {
 public:
  explicit TableBytes(std::string what) : ByteReader(std::move(what)) {}
  void write(std::span<const std::byte> bytes) override { bytes_.write(bytes); }
  std::span<const std::byte> take(size_t n) override {
    check_left(n);
    return bytes_.bytes().subspan(std::exchange(at_, at_ + n), n);
  }
  size_t left() const override { return bytes_.bytes().size() - at_; }

 private:
  ByteBuffer bytes_;
  size_t at_ = 0;
};

/// The shard of a part, with the wanted rows.
std::unique_ptr<Shard> replay_part(Env& env, const std::string& dir, const CutPart& part,
                                   ReplayedRows rows) {
  const std::string folder = dir + "/" + cut_folder_name(part.index);
  for (const CutSegment& segment : part.segments) {
    const std::string path = log_segment_path(folder, segment.number);
    check<DataError>(env.file_exists(path), path, ": missing, expected ", segment.bytes, " bytes");
    const uint64_t sum = segment_sum(*env.open_file(path), path, segment.bytes);
    check<DataError>(sum == segment.sum, path,
                     fmt::format(": is of another cut or damaged, the sum of its ends is {:016x}, "
                                 "expected {:016x}",
                                 sum, segment.sum));
  }
  Placement placement = part.placement;
  for (TableSpec& spec : placement.tables) spec.store = "memory";
  auto shard = std::make_unique<Shard>(std::move(placement), part.index, 1);
  JournalReplay replay(*shard, folder, rows);
  uint64_t last_record = 0;
  for (const CutSegment& segment : part.segments) {
    LogSegmentFile file(env, folder, segment.number, part.identity);
    const auto walk = file.walk(segment.bytes, [&](LogRecord& record) { replay.add(record); });
    if (!walk.problem.empty() || walk.end != segment.bytes)
      file.refuse(walk.stop, walk.problem.empty() ? "no frame" : walk.problem,
                  ", expected the frames of ", segment.bytes, " bytes");
    last_record = walk.next_record - 1;
  }
  replay.finish();
  check<DataError>(last_record == part.last_record, folder, ": ends with record ", last_record,
                   ", expected ", part.last_record);
  for (size_t i = 0; i < shard->tables(); ++i)
    check<DataError>(
        !rows.wants(static_cast<uint32_t>(i)) || shard->table(i).size() == part.rows.at(i), folder,
        ": table '", shard->table(i).spec().name, "' has ", shard->table(i).size(),
        " rows, expected ", part.rows.at(i));
  return shard;
}

}  // namespace

uint64_t CutPart::bytes() const {
  uint64_t all = 0;
  for (const CutSegment& segment : segments) all += segment.bytes;
  return all;
}

std::string cut_folder_name(uint32_t server) { return fmt::format("server-{}", server); }
std::string cut_file_name(uint32_t server) {
  return cut_folder_name(server) + std::string(kCutEnding);
}
bool is_cut_file(const std::string& file) { return file.ends_with(kCutEnding); }

SealedLog link_segments(Env& env, const std::string& from, std::span<const LogSegment> segments,
                        SealedLog sealed) {
  const std::string file = sealed.folder + std::string(kCutEnding);
  check<IoError>(!env.file_exists(file), file,
                 ": is there already, expected no cut of this number");
  env.make_directories(sealed.folder);
  if (sealed.segments.empty())
    for (const std::string& name : env.list_files(sealed.folder))
      if (log_segment_number(name)) env.remove_file(sealed.folder + "/" + name);
  for (const LogSegment& segment : segments) {
    const std::string path = log_segment_path(from, segment.number);
    SealedLog::Segment& each = sealed.segments.emplace_back();
    each.segment = segment;
    each.file = env.open_file(path);
    try {
      env.link_file(path, log_segment_path(sealed.folder, segment.number));
      each.linked = true;
    } catch (const IoError&) {  // another file system, or one without links: it is copied later
    }
  }
  return sealed;
}

uint64_t SealedLog::added() const {
  uint64_t bytes = 0;
  for (const Segment& each : segments)
    if (!each.known) bytes += each.segment.bytes;
  return bytes;
}

std::vector<CutSegment> finish_links(Env& env, SealedLog sealed) {
  std::vector<CutSegment> all;
  for (const SealedLog::Segment& each : sealed.segments) {
    const std::string path = log_segment_path(sealed.folder, each.segment.number);
    if (!each.linked) copy_segment(env, *each.file, each.segment.bytes, path);
    all.push_back({.number = each.segment.number,
                   .bytes = each.segment.bytes,
                   .sum = segment_sum(*each.file, path, each.segment.bytes)});
  }
  env.sync_folder(sealed.folder);
  return all;
}

FileSum write_cut_part(Env& env, const std::string& dir, const CutPart& part) {
  ByteBuffer out;
  out.put(kCutMagic);
  out.put(kCutVersion);
  FieldWriter writer(out);
  writer(part);
  const uint64_t sum = hash64(out.bytes());
  out.put(sum);
  write_file_atomically(env, dir + "/" + cut_file_name(part.index), out.bytes());
  uint64_t rows = 0;
  for (const uint64_t of_table : part.rows) rows += of_table;
  return {.rows = rows, .bytes = out.bytes().size(), .sum = sum};
}

CutPart read_cut_part(Env& env, const std::string& dir, const std::string& file) {
  const std::string path = dir + "/" + file;
  const std::vector<std::byte> bytes = env.read_file(path);
  constexpr size_t kHead = kCutMagic.size() + sizeof kCutVersion;
  check<DataError>(bytes.size() > kHead + sizeof(uint64_t) &&
                       std::memcmp(bytes.data(), kCutMagic.data(), kCutMagic.size()) == 0,
                   path, ": not a server's part of a cut");
  const auto content = std::span(bytes).first(bytes.size() - sizeof(uint64_t));
  ByteSource sum(std::span<const std::byte>(bytes).last(sizeof(uint64_t)), path);
  check<DataError>(sum.get<uint64_t>() == hash64(content), path,
                   ": damaged or truncated, its checksum does not fit");
  ByteSource in(content.subspan(kCutMagic.size()), path);
  const auto version = in.get<uint32_t>();
  check<DataError>(version == kCutVersion, path, ": version ", version, " of a cut, expected ",
                   kCutVersion);
  CutPart part;
  FieldReader reader(in);
  reader(part);
  const Placement& placement = part.placement;
  check<DataError>(in.left() == 0 && file == cut_file_name(part.index) &&
                       part.index < placement.servers &&
                       part.rows.size() == placement.tables.size() &&
                       placement.key_sets.size() == placement.tables.size() &&
                       placement.owners.size() == Placement::kSlots,
                   path, ": is the part of server ", part.index, " of ", placement.servers,
                   ", with rows of ", part.rows.size(), " tables, expected those of ", file,
                   " and ", placement.tables.size(), " tables");
  return part;
}

std::unique_ptr<ByteReader> open_cut_table(Env& env, const std::string& dir,
                                           const SavedTable& saved) {
  const CutPart part = read_cut_part(env, dir, saved.file);
  const std::string path = dir + "/" + saved.file;
  const auto& tables = part.placement.tables;
  const auto spec = std::ranges::find(tables, saved.table, &TableSpec::name);
  check<DataError>(spec != tables.end(), path, ": has no table '", saved.table, "'");
  const auto number = static_cast<uint32_t>(spec - tables.begin());
  const auto shard = replay_part(env, dir, part, {.any = true, .table = number});
  auto bytes = std::make_unique<TableBytes>(path);
  try {
    save_table(shard->table(number), *bytes);
  } catch (const DataError& e) {
    fail<DataError>(path, ": ", e.what());
  }
  return bytes;
}

std::vector<float> read_cut_parameters(Env& env, const std::string& dir, const std::string& file) {
  const CutPart part = read_cut_part(env, dir, file);
  return replay_part(env, dir, part, {.any = false})->parameters();
}

}  // namespace argosy::ps

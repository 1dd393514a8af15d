#include "argosy/ps/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/log/segment_file.h"
#include "argosy/ps/archive.h"
#include "argosy/ps/wire.h"

namespace argosy::ps {
namespace {

constexpr size_t kPage = size_t{4} << 20;     // bytes of a frame, about
constexpr size_t kGather = size_t{16} << 20;  // bytes gathered in a record
constexpr uint64_t kChain = 2;                // a cut's bytes that the log has not, by its content
constexpr size_t kSweep = 2;                  // bytes swept for each byte that has changed

/// Removes the log of an earlier run. Throws ConfigError for any other.
void remove_log(Env& env, const std::string& folder, const std::string& identity) {
  env.make_directories(folder);
  std::vector<std::string> old;
  for (const std::string& name : env.list_files(folder)) {
    const std::optional<uint64_t> number = log_segment_number(name);
    if (!number) continue;
    try {
      const LogSegmentFile segment(env, folder, *number, identity);
    } catch (const DataError& e) {
      fail<ConfigError>("the journal's folder is in use: ", e.what(),
                        "; give another folder, or remove this one");
    }
    old.push_back(log_segment_path(folder, *number));
  }
  for (const std::string& path : old) env.remove_file(path);
  if (!old.empty()) env.sync_folder(folder);
}

template <class T>
std::vector<std::byte> encoded(const T& value) {
  ByteBuffer out;
  FieldWriter writer(out);
  writer(value);
  return {out.bytes().begin(), out.bytes().end()};
}

}  // namespace

std::string journal_identity(const Shard& shard, const std::string& job) {
  return fmt::format("server journal 2\njob {}\nserver {} of {}\nplan {:x}\n", job, shard.index(),
                     shard.placement().servers, shard.placement().hash());
}

Durability parse_durability(std::string_view text) {
  if (text == "none") return Durability::none;
  if (text == "journal") return Durability::journal;
  check<ConfigError>(text == "fsync", "durability is '", text,
                     "', expected none, journal or fsync");
  return Durability::fsync;
}

Journal::Journal(Env& env, Shard& shard, JournalOptions options, const std::string& job)
    : env_(env),
      shard_(shard),
      options_(std::move(options)),
      identity_(journal_identity(shard, job)) {
  if (options_.offer) {
    look();
    return;
  }
  if (!options_.recover) remove_log(env, options_.folder, identity_);
  open(UINT64_MAX);
}

/// Fills offers_. What cannot be read is nothing to go on from.
void Journal::look() try {
  const auto visit = [&](LogRecord& record) {
    const std::string what = fmt::format("{}: record {}", options_.folder, record.number());
    while (const std::optional<LogFrame> frame = record.next()) {
      if (frame->kind != JournalReplay::kState) continue;
      ByteSource in(frame->payload, what);
      FieldReader reader(in);
      reader(offers_.emplace_back());
      offered_records_.push_back(record.number());
    }
  };
  read_log(env_, options_.folder, identity_, visit);
  if (offers_.empty()) return;
  size_t partial = 0;
  while (partial + 1 < offers_.size() && offered_records_[partial] < offers_.back().whole)
    ++partial;
  offers_.erase(offers_.begin(), offers_.begin() + static_cast<std::ptrdiff_t>(partial));
  offered_records_.erase(offered_records_.begin(),
                         offered_records_.begin() + static_cast<std::ptrdiff_t>(partial));
  const JournalState& last = offers_.back();
  if (last.run == 0 || last.run != options_.run || last.left.size() == last.mark.applied.size())
    offers_.clear();
} catch (const DataError& e) {
  offers_.clear();
  trouble_ = e.what();
}

void Journal::take_up(uint64_t settled) {
  if (!settling::goes_on(settled)) {
    remove_log(env_, options_.folder, identity_);
    return open(UINT64_MAX);
  }
  uint64_t last = offered_records_.back();
  if (settled != settling::kEnds) {
    const uint64_t step = settling::step_of(settled);
    size_t behind = offers_.size();
    while (behind > 0 && offers_[behind - 1].mark.step != step) --behind;
    check<DataError>(behind > 0, options_.folder, ": has no record of step ", step,
                     ", expected one that it has offered");
    last = offered_records_[behind - 1];
  }
  open(last);
}

void Journal::open(uint64_t last_record) {
  JournalReplay replay(shard_, options_.folder);
  const auto visit = [&](LogRecord& record) { replay.add(record); };
  log_ = open_log(env_,
                  {.folder = options_.folder,
                   .identity = identity_,
                   .durability = options_.durability,
                   .segment_bytes = options_.segment_bytes},
                  visit, last_record);
  last_record_ = log_->last_durable();
  replay.finish();
  recovered_ = replay.state();
  if (recovered_) whole_ = recovered_->whole;
  parameters_ = replay.parameters();
  meeting_bytes_ = replay.meetings();
  if (!meeting_bytes_.empty()) {
    ByteSource in(meeting_bytes_, options_.folder + ": meetings");
    FieldReader reader(in);
    reader(meetings_);
  }
  shard_.track_changes();
}

Journal::~Journal() = default;

size_t Journal::bytes_of(const Rows& rows) const {
  return rows.keys.size() * sizeof(Key) + rows.images.size() * sizeof(float);
}

/// Rows to fill, with memory of earlier records.
Journal::Rows& Journal::spare(uint32_t table, Section section) {
  if (used_ == rows_.size()) rows_.emplace_back();
  Rows& rows = rows_[used_++];
  rows.table = table;
  rows.section = section;
  rows.keys.clear();
  rows.images.clear();
  return rows;
}

/// The images of these keys, page by page. Those that have no row are counted, or were erased.
void Journal::take_rows(uint32_t table, std::span<const Key> keys) {
  RowTable& from = shard_.table(table);
  const RowRecipe& recipe = from.recipe();
  const size_t page = kPage / (sizeof(Key) + recipe.floats(Section::rows) * sizeof(float));
  for (size_t at = 0; at < keys.size(); at += page) {
    const auto some = keys.subspan(at, std::min(page, keys.size() - at));
    {
      Rows& rows = spare(table, Section::rows);
      from.images().read(Section::rows, some, rows.keys, rows.images);
      collected_ += bytes_of(rows);
      if (!recipe.counts_keys() || rows.keys.size() == some.size()) continue;
    }
    Rows& counted = spare(table, Section::counted);
    from.images().read(Section::counted, some, counted.keys, counted.images);
    collected_ += bytes_of(counted);
  }
}

/// A table that was replaced is in the record as a whole.
void Journal::take_all(uint32_t table) {
  replaced_.push_back(table);
  RowTable& from = shard_.table(table);
  for (const Section section : {Section::rows, Section::counted}) {
    const size_t width = from.recipe().floats(section);
    RowImages::Cursor cursor;
    while (width > 0 && !cursor.at_end) {
      Rows& rows = spare(table, section);
      from.images().visit(section, cursor, kPage / (sizeof(Key) + width * sizeof(float)),
                          [&](Key key, std::span<const float> image) {
                            rows.keys.push_back(key);
                            rows.images.insert(rows.images.end(), image.begin(), image.end());
                          });
      collected_ += bytes_of(rows);
    }
  }
}

void Journal::collect(JournalState state, std::optional<PastMeetings> meetings) {
  ChangeSet& changes = *shard_.changes();
  const bool all = std::exchange(all_again_, false);
  if (all) {
    for (uint32_t table = 0; table < shard_.tables(); ++table) changes.replaced(table);
    changes.parameters_changed();
  }
  state_ = std::move(state);
  used_ = 0;
  collected_ = 0;
  replaced_.clear();
  shrinks_.assign(changes.shrinks().begin(), changes.shrinks().end());
  for (uint32_t table = 0; table < shard_.tables(); ++table) {
    if (changes.is_replaced(table)) {
      take_all(table);
      continue;
    }
    for (size_t part = 0; part < shard_.parts(); ++part)
      take_rows(table, changes.keys(part, table));
  }
  has_parameters_ = changes.has_parameters();
  has_meetings_ = all || meetings.has_value();
  if (meetings) meeting_bytes_ = encoded(*meetings);
  changed_pages_ = used_;
  if (!shrinks_.empty() || !replaced_.empty()) since_.whole = true;
  begin_sweep_if_due();
  // The log is at its longest at the end of a sweep, so small logs are swept as fast as large ones.
  if (gathering())  // a sweep goes on when that is done
    gather();
  else
    sweep(std::max(kPage, kSweep * (collected_ + parameters_.size() * sizeof(float))));
  if (sweep_ && sweep_->done) whole_ = last_record_ + 1;
  state_.whole = whole_;
  if (has_parameters_) parameters_ = shard_.parameters();
  changes.clear();
  waiting_ = true;
}

const JournalState& Journal::write() try {
  write_record();
  last_record_ = log_->commit();
  waiting_ = false;
  note_changes();
  if (sweep_ && sweep_->done) end_sweep();
  return state_;
} catch (const IoError&) {
  log_->abandon();
  forget_what_is_lost();
  throw;
}

/// Of records that are gone the content is written anew: the next one has everything.
void Journal::forget_what_is_lost() {
  if (log_->last_durable() >= last_record_) return;
  last_record_ = log_->last_durable();
  all_again_ = true;
  waiting_ = false;
  whole_ = last_record_ + 1;
  sweep_.reset();
  gathering_.reset();
  since_.whole = true;
}

void Journal::begin_gathering() {
  if (!since_.whole && !gathering()) gathering_.emplace();
}

/// Adds some of what has changed since the last cut to the record; the first one has a segment of
/// its own. Keys that come to the list later are in these records anyway.
void Journal::gather() {
  if (since_.whole) return gathering_.reset();
  Gathering& own = *gathering_;
  if (own.first_record == 0) {
    own.first_record = last_record_ + 1;
    for (const DirtyKeys& keys : since_.changed) own.ends.push_back(keys.size());
    has_parameters_ |= since_.parameters;
    has_meetings_ |= since_.meetings;
    begins_segment_ = true;
  }
  for (const size_t most = collected_ + kGather; own.table < shard_.tables(); own.at = 0) {
    const RowRecipe& recipe = shard_.table(own.table).recipe();
    const size_t row = sizeof(Key) + recipe.floats(Section::rows) * sizeof(float);
    const size_t left = own.ends[own.table] - own.at;
    const size_t some = std::min(left, (most - std::min(most, collected_)) / row + 1);
    take_rows(own.table, since_.changed[own.table].keys().subspan(own.at, some));
    own.at += some;
    if (some < left) return;
    ++own.table;
  }
  own.done = true;
}

/// Of a record that is written.
void Journal::note_changes() {
  begins_segment_ = false;
  if (since_.whole) return;
  since_.parameters |= has_parameters_;
  since_.meetings |= has_meetings_;
  for (const Rows& rows : std::span(rows_).first(changed_pages_))
    for (const Key key : rows.keys) since_.changed[rows.table].add(key);
}

SealedLog Journal::cut(const std::string& folder) try {
  check<Error>(!waiting_, options_.folder, ": a cut, but a record waits to be written");
  log_->seal();
  SealedLog sealed = link(folder);
  since_.whole = false;
  since_.folder = folder;
  since_.last_record = log_->last_durable();
  since_.segments.clear();
  for (const SealedLog::Segment& each : sealed.segments) since_.segments.push_back(each.segment);
  since_.changed.resize(shard_.tables());
  for (DirtyKeys& keys : since_.changed) keys.clear();
  since_.parameters = since_.meetings = false;
  gathering_.reset();
  return sealed;
} catch (const IoError&) {
  since_.whole = true;
  forget_what_is_lost();
  throw;
}

/// The segments of the cut before and what has come since, or all of the log.
SealedLog Journal::link(const std::string& folder) {
  const auto begin = [&] {
    return SealedLog{.folder = folder, .identity = identity_, .last_record = log_->last_durable()};
  };
  const auto sum = [](std::span<const LogSegment> segments) {
    uint64_t bytes = 0;
    for (const LogSegment& segment : segments) bytes += segment.bytes;
    return bytes;
  };
  const std::vector<LogSegment>& all = log_->segments();
  const uint64_t most = sum(all) + kChain * live_bytes();
  if (!since_.whole && sum(since_.segments) <= most) {
    const bool gathered = gathering_ && gathering_->done;
    const uint64_t first = gathered ? gathering_->first_record : since_.last_record + 1;
    std::vector<LogSegment> added;
    for (const LogSegment& segment : all)
      if (segment.last_record >= first && segment.number > since_.segments.back().number)
        added.push_back(segment);
    try {
      SealedLog sealed = link_segments(env_, since_.folder, since_.segments, begin());
      for (SealedLog::Segment& each : sealed.segments) each.known = true;
      return link_segments(env_, options_.folder, added, std::move(sealed));
    } catch (const IoError&) {  // the cut before is gone
    }
  }
  SealedLog sealed = link_segments(env_, options_.folder, all, begin());
  for (SealedLog::Segment& each : sealed.segments)
    each.known = std::ranges::find(since_.segments, each.segment.number, &LogSegment::number) !=
                 since_.segments.end();
  return sealed;
}

void Journal::write_record() {
  using enum JournalReplay::Frame;
  using Part = std::span<const std::byte>;
  if (begins_segment_) log_->seal();
  log_->begin_record();
  const auto add = [&](JournalReplay::Frame kind, std::initializer_list<Part> parts) {
    log_->add_frame(kind, std::span(parts.begin(), parts.size()));
    for (const Part& part : parts) written_ += part.size();
  };
  const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
  for (const uint32_t unseen : shrinks_) add(kShrink, {bytes(std::array{unseen})});
  for (const uint32_t table : replaced_) add(kReplace, {bytes(std::array{table})});
  for (const Rows& rows : std::span(rows_).first(used_)) {
    if (rows.keys.empty()) continue;
    const std::array head{rows.table, static_cast<uint32_t>(rows.section)};
    const std::array count{static_cast<uint64_t>(rows.keys.size())};
    add(kRows, {bytes(head), bytes(count), bytes(rows.keys), bytes(rows.images)});
  }
  for (size_t at = 0; has_parameters_ && at < parameters_.size(); at += kPage / sizeof(float)) {
    const size_t n = std::min(kPage / sizeof(float), parameters_.size() - at);
    const std::array range{static_cast<uint64_t>(at), static_cast<uint64_t>(parameters_.size())};
    add(kParameters, {bytes(range), bytes(std::span(parameters_).subspan(at, n))});
  }
  for (size_t at = 0; has_meetings_ && at < meeting_bytes_.size(); at += kPage) {
    const size_t n = std::min(kPage, meeting_bytes_.size() - at);
    const std::array range{static_cast<uint64_t>(at), static_cast<uint64_t>(meeting_bytes_.size())};
    add(kMeetings, {bytes(range), std::span<const std::byte>(meeting_bytes_).subspan(at, n)});
  }
  const std::vector<std::byte> state = encoded(state_);
  add(kState, {Part(state)});
}

uint64_t Journal::live_bytes() const {
  uint64_t bytes = parameters_.size() * sizeof(float);
  for (uint32_t table = 0; table < shard_.tables(); ++table) {
    RowTable& rows = shard_.table(table);
    bytes += rows.size() * (sizeof(Key) + rows.recipe().floats(Section::rows) * sizeof(float));
  }
  return bytes;
}

void Journal::begin_sweep_if_due() {
  if (sweep_) return;
  uint64_t all = 0;
  for (const LogSegment& segment : log_->segments()) all += segment.bytes;
  if (all < 2 * options_.segment_bytes + live_bytes() * 3 / 2) return;
  sweep_.emplace().first_record = last_record_ + 1;
  has_parameters_ = has_meetings_ = true;
}

void Journal::sweep(size_t bytes) {
  if (!sweep_) return;
  for (size_t left = bytes; left > 0 && !sweep_->done;) {
    RowTable& table = shard_.table(sweep_->table);
    const size_t width = table.recipe().floats(sweep_->section);
    const size_t row = sizeof(Key) + width * sizeof(float);
    if (width > 0 && !sweep_->cursor.at_end) {
      Rows& rows = spare(sweep_->table, sweep_->section);
      table.images().visit(sweep_->section, sweep_->cursor, std::min(left, kPage) / row + 1,
                           [&](Key key, std::span<const float> image) {
                             rows.keys.push_back(key);
                             rows.images.insert(rows.images.end(), image.begin(), image.end());
                           });
      left -= std::min(left, bytes_of(rows));
      if (!sweep_->cursor.at_end) continue;
    }
    sweep_->cursor = {};
    if (sweep_->section == Section::rows) {
      sweep_->section = Section::counted;
    } else {
      sweep_->section = Section::rows;
      sweep_->done = ++sweep_->table == shard_.tables();
    }
  }
  if (shard_.tables() == 0) sweep_->done = true;
}

/// Everything is in the records from its first one on.
void Journal::end_sweep() {
  const uint64_t first = sweep_->first_record;
  sweep_.reset();
  // The oldest first: what is left must not have an image without the shrinks that came after it.
  const std::vector<LogSegment> segments = log_->segments();
  for (const LogSegment& segment : segments)
    if (segment.last_record < first) log_->remove_segment(segment.number);
}

}  // namespace argosy::ps

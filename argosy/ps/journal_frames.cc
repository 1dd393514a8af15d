#include "argosy/ps/journal_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/ps/archive.h"
#include "argosy/ps/meetings.h"

namespace argosy::ps {
namespace {

constexpr size_t kMostThreads = 8;  // that put rows

}  // namespace

JournalReplay::JournalReplay(Shard& shard, std::string what, ReplayedRows rows)
    : shard_(shard),
      what_(std::move(what)),
      rows_(rows),
      rows_ahead_(shard, std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads)) {
}

void JournalReplay::add(LogRecord& record) {
  const std::string what = fmt::format("{}: record {}", what_, record.number());
  while (const std::optional<LogFrame> frame = record.next()) add_frame(*frame, what);
}

void JournalReplay::add_frame(const LogFrame& frame, const std::string& what) {
  ByteSource in(frame.payload, what);
  switch (frame.kind) {
    case kShrink:
      rows_ahead_.finish();
      shard_.shrink(in.get<uint32_t>());
      break;
    case kReplace:
      rows_ahead_.finish();
      shard_.table(in.get<uint32_t>()).images().begin_load()->commit();
      break;
    case kRows:
      add_rows(in);
      break;
    case kParameters: {
      const auto at = in.get<uint64_t>(), all = in.get<uint64_t>();
      const size_t n = in.left() / sizeof(float);
      check<DataError>(at <= all && n <= all - at, what, ": ", n, " floats from ", at, " of ", all,
                       " parameters");
      parameters_.resize(all);
      in.get_all(std::span(parameters_).subspan(at, n));
      break;
    }
    case kMeetings: {
      const auto at = in.get<uint64_t>(), all = in.get<uint64_t>();
      const size_t n = in.left();
      check<DataError>(at <= all && n <= all - at && all <= 2 * Meetings::kKept, what, ": ", n,
                       " bytes from ", at, " of ", all, " of meetings");
      meetings_.resize(all);
      std::ranges::copy(in.take(n), meetings_.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    }
    case kState: {
      FieldReader reader(in);
      reader(state_.emplace());
      break;
    }
    default:
      fail<DataError>(what, ": a frame of kind ", frame.kind, ", expected 1 to 6");
  }
  check<DataError>(in.left() == 0, what, ": ", in.left(), " bytes too many in a frame of kind ",
                   frame.kind);
}

void JournalReplay::add_rows(ByteSource& in) {
  const auto number = in.get<uint32_t>(), section = in.get<uint32_t>();
  check<DataError>(number < shard_.tables() && section <= 1, in.what(), ": table ", number,
                   ", section ", section, ", expected tables below ", shard_.tables());
  const auto half = static_cast<Section>(section);
  const size_t width = shard_.table(number).recipe().floats(half);
  const auto n = in.get<uint64_t>();
  check<DataError>(
      n <= in.left() / sizeof(Key) && in.left() == n * (sizeof(Key) + width * sizeof(float)),
      in.what(), ": ", n, " rows of ", width, " floats in ", in.left(), " bytes");
  const auto rows = in.take(in.left());
  if (rows_.wants(number)) rows_ahead_.add(number, half, n, rows);
}

void JournalReplay::finish() {
  rows_ahead_.finish();
  if (!parameters_.empty()) shard_.set_parameters(parameters_);
}

}  // namespace argosy::ps

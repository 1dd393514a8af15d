#include "argosy/log/reader.h"

#include <algorithm>
#include <set>

#include "argosy/base/error.h"
#include "argosy/log/segment_file.h"

namespace argosy {
namespace {

/// The numbers of the segment files in a folder, sorted.
std::vector<uint64_t> segment_numbers(Env& env, const std::string& folder) {
  std::vector<uint64_t> numbers;
  if (!env.file_exists(folder)) return numbers;
  for (const std::string& name : env.list_files(folder)) {
    if (!name.ends_with(".seg")) continue;
    const auto number = log_segment_number(name);
    check<DataError>(number.has_value(), folder, "/", name, ": not a name of a log's segment, ",
                     "expected ten digits before .seg");
    numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// The end of the last segment, which may be torn (invariant 3).
LogSegmentFile::Walk walk_last(LogSegmentFile& last) {
  auto walk = last.walk(last.size(), {});
  if (walk.problem.empty()) return walk;
  if (walk.sealed) last.refuse(walk.stop, walk.problem, ", expected the end of a sealed segment");
  if (const auto later = last.later_frame(walk.stop, walk.next_record))
    last.refuse(walk.stop, walk.problem, ", expected a frame of record ", walk.next_record,
                "; a frame of record ", later->record,
                " follows, so this is damage and not the end of the log");
  return walk;
}

LogSegment segment_of(const LogSegmentFile& file, const LogSegmentFile::Walk& walk) {
  return {.number = file.header().segment,
          .first_record = file.header().first_record,
          .last_record = walk.next_record - 1,
          .bytes = walk.end,
          .sealed = walk.sealed};
}

/// Delivers the records of a segment that must be as the catalogue says.
void deliver(LogSegmentFile& file, const LogSegment& expected, LogVisitor visit) {
  if (file.size() < expected.bytes || (expected.sealed && file.size() != expected.bytes))
    file.refuse(file.size(), "ends here, expected ", expected.sealed ? "" : "at least ",
                expected.bytes, " bytes");
  if (file.header().first_record != expected.first_record)
    file.refuse(0, "begins with record ", file.header().first_record, ", expected ",
                expected.first_record);
  const auto walk = file.walk(expected.bytes, visit);
  if (!walk.problem.empty())
    file.refuse(walk.stop, walk.problem, ", expected a frame of record ", walk.next_record);
  const LogSegment found = segment_of(file, walk);
  if (found != expected)
    file.refuse(walk.end, found.sealed ? "a sealed" : "an open", " segment with records to ",
                found.last_record, ", expected ", expected.sealed ? "a sealed" : "an open",
                " one of ", expected.bytes, " bytes with records to ", expected.last_record);
}

}  // namespace

std::string log_segment_path(const std::string& folder, uint64_t number) {
  return folder + "/" + log_segment_name(number);
}

LogContents read_log(Env& env, const std::string& folder, const std::string& identity,
                     LogVisitor visit) {
  LogContents contents;
  const std::vector<uint64_t> numbers = segment_numbers(env, folder);
  if (numbers.empty()) return contents;
  contents.last_number = numbers.back();
  LogSegmentFile last(env, folder, numbers.back(), identity);
  const auto walk = walk_last(last);
  contents.last_record = walk.next_record - 1;

  const std::set<uint64_t> removed(walk.removed.begin(), walk.removed.end());
  for (const LogSegment& segment : last.header().catalogue)
    if (!removed.contains(segment.number)) contents.segments.push_back(segment);
  contents.segments.push_back(segment_of(last, walk));

  std::set<uint64_t> counted;
  for (const LogSegment& segment : contents.segments) {
    counted.insert(segment.number);
    check<DataError>(std::ranges::binary_search(numbers, segment.number),
                     log_segment_path(folder, segment.number), ": missing, expected records ",
                     segment.first_record, " to ", segment.last_record, " in ", segment.bytes,
                     " bytes");
  }
  for (const uint64_t number : numbers) {
    if (counted.contains(number)) continue;
    LogSegmentFile(env, folder, number, identity);  // or it is not ours to remove
    contents.retired.push_back(number);
  }
  for (const LogSegment& segment : contents.segments) {
    if (segment.number == numbers.back()) {
      deliver(last, segment, visit);
    } else {
      LogSegmentFile file(env, folder, segment.number, identity);
      deliver(file, segment, visit);
    }
  }
  return contents;
}

}  // namespace argosy

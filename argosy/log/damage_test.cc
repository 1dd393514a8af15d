#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/log/test_log.h"

namespace argosy {
namespace {

/// A log with what there can be in one: sealed segments, one given up, one removed, an abandoned
/// record and a last segment that is still open.
struct SmallLog {
  SmallLog() {
    const auto log = open_log(
        env,
        {.folder = "log", .identity = "job", .durability = Durability::fsync, .segment_bytes = 500},
        {});
    write_record(*log, {"one", "two"});
    write_record(*log, {std::string(200, 'x')});
    write_record(*log, {"removed later"});
    log->seal();
    write_record(*log, {"three"});
    disk.inject(SimulatedDisk::Operation::sync, SimulatedDisk::Failing::once);
    EXPECT_THROW(write_record(*log, {"lost"}), IoError);
    write_record(*log, {"four"});
    log->begin_record();
    log->add_frame(1, log_bytes("abandoned"));
    log->abandon();
    log->remove_segment(2);
    write_record(*log, {"five", ""});
    write_record(*log, {"six"});
    records = records_of(env);
    last = log->segments().back();
  }

  SimulatedDisk disk;
  DiskEnv env{disk, "host"};
  Records records;
  LogSegment last;  // whose tail may be torn
};

std::vector<std::string> paths(Env& env) {
  std::vector<std::string> all;
  for (const std::string& name : env.list_files("log")) all.push_back("log/" + name);
  return all;
}

/// What is read, if the log is not refused, has to be the first of the records, all but `missing`.
/// False: it was refused.
bool reads_a_prefix(SmallLog& small, size_t missing) {
  Records read;
  try {
    read = records_of(small.env);
  } catch (const DataError&) {
    return false;
  }
  EXPECT_GE(read.size() + missing, small.records.size());
  EXPECT_TRUE(std::ranges::equal(
      read, std::span(small.records).first(std::min(read.size(), small.records.size()))));
  return true;
}

TEST(LogDamage, AFlippedBitIsFoundOrEndsTheLogBeforeItsLastRecord) {
  SmallLog small;
  ASSERT_EQ(small.records.size(), 6U);
  size_t flips = 0, read = 0;
  for (const std::string& path : paths(small.env)) {
    const uint64_t size = small.env.file_size(path);
    for (uint64_t offset = 0; offset < size; ++offset) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        SCOPED_TRACE(path + " offset " + std::to_string(offset) + " bit " + std::to_string(bit));
        small.disk.flip_bit(path, offset, bit);
        const bool is_last = path == log_segment_path("log", small.last.number);
        read += reads_a_prefix(small, is_last ? 1 : 0) ? 1 : 0;
        small.disk.flip_bit(path, offset, bit);
        ++flips;
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  RecordProperty("flips", static_cast<int>(flips));
  EXPECT_GT(read, 0U);
  // Nothing but the last record, or what the catalogue says does not count, may be wrong unnoticed.
  EXPECT_LT(read, flips / 4);
}

TEST(LogDamage, ATruncatedFileIsFoundOrEndsTheLogBeforeTheCut) {
  SmallLog whole;
  for (const std::string& path : paths(whole.env)) {
    SmallLog small;
    const bool is_last = path == log_segment_path("log", small.last.number);
    uint64_t counted = 0;  // what lies behind that does not count
    for (const LogSegment& segment : read_log(small.env, "log", "job", {}).segments)
      if (log_segment_path("log", segment.number) == path) counted = segment.bytes;
    for (uint64_t size = small.env.file_size(path); size-- > 0;) {
      SCOPED_TRACE(path + " cut to " + std::to_string(size));
      small.env.truncate_file(path, size);
      const bool read = reads_a_prefix(small, is_last ? small.records.size() : 0);
      // A cut through records that were followed by others is refused, but for the last segment,
      // of which nothing tells how far it went.
      EXPECT_TRUE(is_last || !read || size >= counted);
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST(LogDamage, AnOpenedLogHasWhatWasReadAndGoesOn) {
  SmallLog small;
  const std::string path = log_segment_path("log", small.last.number);
  small.env.truncate_file(path, small.last.bytes - 1);
  Records read;
  const auto log =
      open_log(small.env, {.folder = "log", .identity = "job", .durability = Durability::fsync},
               [&](LogRecord& record) { read.emplace_back(record.number(), text_of(record)); });
  EXPECT_EQ(read.size(), small.records.size() - 1);
  EXPECT_EQ(read, records_of(small.env));
  read.emplace_back(write_record(*log, {"seven"}), "[1:seven]");
  EXPECT_EQ(read, records_of(small.env));
}

}  // namespace
}  // namespace argosy

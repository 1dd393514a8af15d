#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/log/test_log.h"

namespace argosy {
namespace {

using Operation = SimulatedDisk::Operation;
using Failing = SimulatedDisk::Failing;

struct LogTest : testing::Test {
  std::unique_ptr<LogWriter> open(Durability durability = Durability::fsync,
                                  uint64_t segment_bytes = uint64_t{1} << 20) {
    return open_log(env,
                    {.folder = "log",
                     .identity = "job",
                     .durability = durability,
                     .segment_bytes = segment_bytes},
                    {});
  }
  std::string refusal() {
    return message_of<DataError>([&] { records_of(env); });
  }

  SimulatedDisk disk;
  DiskEnv env{disk, "host"};
};

TEST_F(LogTest, RecordsAreReplayedInOrder) {
  {
    const auto log = open();
    EXPECT_EQ(write_record(*log, {"a", "bc"}), 1U);
    EXPECT_EQ(write_record(*log, {}), 2U);
    EXPECT_EQ(write_record(*log, {""}), 3U);
    EXPECT_EQ(log->last_durable(), 3U);
  }
  EXPECT_EQ(records_of(env), (Records{{1, "[1:a][2:bc]"}, {2, ""}, {3, "[1:]"}}));
  const auto log = open();
  EXPECT_EQ(write_record(*log, {"d"}), 4U);
  EXPECT_EQ(records_of(env).back(), (Records::value_type{4, "[1:d]"}));
  EXPECT_EQ(env.list_files("log"), (std::vector<std::string>{"0000000001.seg", "0000000002.seg"}));
}

/// In the last segment, in an earlier one, and before all records.
TEST_F(LogTest, OpenedUpToARecordItGoesOnBehindThat) {
  for (const uint64_t last : {6U, 5U, 3U, 2U, 1U, 0U}) {
    SCOPED_TRACE(last);
    SimulatedDisk fresh;
    DiskEnv there{fresh, "host"};
    const auto open_to = [&](uint64_t to, Records& found) {
      return open_log(
          there, {.folder = "log", .identity = "job"},
          [&](LogRecord& record) { found.emplace_back(record.number(), text_of(record)); }, to);
    };
    Records none;
    {
      const auto log = open_to(UINT64_MAX, none);
      for (const char* const text : {"a", "b", "c", "d", "e", "f"}) {
        write_record(*log, {text});
        if (text[0] == 'c') log->seal();
      }
    }
    const Records all = records_of(there);
    const Records kept(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(last));
    Records found;
    {
      const auto log = open_to(last, found);
      EXPECT_EQ(found, kept);
      EXPECT_EQ(records_of(there), all);  // until there is another record
      EXPECT_EQ(write_record(*log, {"new"}), last + 1);
    }
    Records expected = kept;
    expected.emplace_back(last + 1, "[1:new]");
    EXPECT_EQ(records_of(there), expected);
    Records again;
    EXPECT_EQ(write_record(*open_to(UINT64_MAX, again), {"more"}), last + 2);
    EXPECT_EQ(again, expected);
  }
}

TEST_F(LogTest, PartsAreGatheredAndTheirPlaceIsTold) {
  const auto log = open();
  log->begin_record();
  const std::vector<std::span<const std::byte>> parts = {log_bytes("ab"), {}, log_bytes("cde")};
  const LogPlace place = log->add_frame(7, parts);
  log->commit();
  EXPECT_EQ(records_of(env), (Records{{1, "[7:abcde]"}}));
  const auto bytes = env.read_file(log_segment_path("log", place.segment));
  EXPECT_TRUE(std::ranges::equal(std::span(bytes).subspan(place.offset, 5), log_bytes("abcde")));
}

TEST_F(LogTest, ARecordWithoutCommitDoesNotExist) {
  const auto log = open();
  write_record(*log, {"a"});
  log->begin_record();
  log->add_frame(1, std::vector<std::byte>(1000000));
  disk.crash_process("host");
  EXPECT_EQ(records_of(env), (Records{{1, "[1:a]"}}));
  const auto again = open();
  EXPECT_EQ(write_record(*again, {"b"}), 2U);
  EXPECT_EQ(records_of(env), (Records{{1, "[1:a]"}, {2, "[1:b]"}}));
}

TEST_F(LogTest, AnAbandonedRecordDoesNotExist) {
  const auto log = open();
  write_record(*log, {"a"});
  log->begin_record();
  log->add_frame(1, log_bytes("half"));
  log->abandon();
  log->abandon();
  EXPECT_EQ(write_record(*log, {"b"}), 2U);
  EXPECT_EQ(records_of(env), (Records{{1, "[1:a]"}, {2, "[1:b]"}}));
  log->seal();
  EXPECT_EQ(records_of(env).size(), 2U);
}

TEST_F(LogTest, SegmentsRollBetweenRecordsAndAreSealed) {
  const auto log = open(Durability::fsync, 1000);
  for (int i = 0; i < 10; ++i) write_record(*log, {std::string(400, 'x'), "y"});
  const auto segments = log->segments();
  ASSERT_EQ(segments.size(), 5U);
  for (size_t i = 0; i < segments.size(); ++i) {
    EXPECT_EQ(segments[i].number, i + 1);
    EXPECT_EQ(segments[i].first_record, 2 * i + 1);
    EXPECT_EQ(segments[i].last_record, 2 * i + 2);
    EXPECT_EQ(segments[i].sealed, i < 4);
    EXPECT_EQ(segments[i].bytes, env.file_size(log_segment_path("log", i + 1)));
  }
  EXPECT_EQ(read_log(env, "log", "job", {}).segments, segments);
}

TEST_F(LogTest, ALargeRecordIsStreamedAndReadWithSmallBuffers) {
  const auto log = open(Durability::journal, 1000);
  const std::string big(kMaxLogFrame, 'x');
  log->begin_record();
  for (int i = 0; i < 3; ++i) log->add_frame(1, log_bytes(big));
  EXPECT_GT(disk.used(), 3 * big.size());
  log->commit();
  size_t frames = 0;
  read_log(env, "log", "job", [&](LogRecord& record) {
    while (const auto frame = record.next()) frames += frame->payload.size() == big.size() ? 1 : 0;
  });
  EXPECT_EQ(frames, 3U);
}

TEST_F(LogTest, AFrameThatIsTooLargeIsRefused) {
  const auto log = open();
  log->begin_record();
  const std::vector<std::byte> big(kMaxLogFrame + 1);
  EXPECT_EQ(message_of<DataError>([&] { log->add_frame(1, big); }),
            "log: a frame of 16777217 bytes, expected at most 16777216");
  log->add_frame(1, log_bytes("a"));
  log->commit();
  EXPECT_EQ(records_of(env), (Records{{1, "[1:a]"}}));
}

TEST_F(LogTest, CallsOutOfOrderAreErrors) {
  const auto log = open();
  EXPECT_THROW(log->commit(), Error);
  EXPECT_THROW(log->add_frame(1, log_bytes("a")), Error);
  log->begin_record();
  EXPECT_THROW(log->begin_record(), Error);
  EXPECT_THROW(log->seal(), Error);
  log->abandon();
  EXPECT_THROW(log->remove_segment(1), Error) << "written to";
  EXPECT_THROW(log->remove_segment(9), Error);
}

TEST_F(LogTest, RemovedSegmentsAreGoneAndDoNotReturn) {
  const auto log = open(Durability::fsync, 1);
  for (const char* text : {"a", "b", "c", "d"}) write_record(*log, {text});
  log->remove_segment(2);
  const Records left = {{1, "[1:a]"}, {3, "[1:c]"}, {4, "[1:d]"}};
  EXPECT_EQ(records_of(env), left);
  EXPECT_FALSE(env.file_exists("log/0000000002.seg"));
  disk.crash_machine("host", *std::make_unique<Dice>(1, 0));
  const auto again = open(Durability::fsync, 1);
  EXPECT_EQ(records_of(env), left);
  write_record(*again, {"e"});
  again->remove_segment(1);
  EXPECT_EQ(records_of(env), (Records{{3, "[1:c]"}, {4, "[1:d]"}, {5, "[1:e]"}}));
  EXPECT_EQ(env.list_files("log"),
            (std::vector<std::string>{"0000000003.seg", "0000000004.seg", "0000000005.seg"}));
}

TEST_F(LogTest, LinksOfItsSegmentsAreALogOfTheirOwn) {
  const auto log = open(Durability::journal, 1);
  for (const char* text : {"a", "b", "c"}) write_record(*log, {text});
  log->remove_segment(1);
  log->seal();
  log->seal();
  env.make_directories("cut");
  for (const LogSegment& segment : log->segments()) {
    EXPECT_TRUE(segment.sealed);
    env.link_file(log_segment_path("log", segment.number), log_segment_path("cut", segment.number));
  }
  env.sync_folder("cut");
  write_record(*log, {"d"});
  log->remove_segment(2);
  disk.crash_machine("host", *std::make_unique<Dice>(1, 0));
  EXPECT_EQ(records_of(env, "cut"), (Records{{2, "[1:b]"}, {3, "[1:c]"}}));
}

TEST_F(LogTest, AnotherLogsFolderIsRefusedAndLeftAsItIs) {
  write_record(*open(), {"a"});
  EXPECT_EQ(
      message_of<DataError>([&] { open_log(env, {.folder = "log", .identity = "other job"}, {}); }),
      "log/0000000001.seg: belongs to the log of 'job', expected 'other job'");
  EXPECT_EQ(records_of(env).size(), 1U);
}

TEST_F(LogTest, FilesThatAreNoSegmentsAreRefused) {
  env.make_directories("log");
  env.create_file("log/0000000007.seg")->append(log_bytes("something else altogether"));
  EXPECT_EQ(refusal(), "log/0000000007.seg: not a segment of a log, its first bytes are others");
  env.remove_file("log/0000000007.seg");
  env.create_file("log/x.seg");
  EXPECT_TRUE(has(refusal(), "log/x.seg: not a name of a log's segment")) << refusal();
}

TEST_F(LogTest, AnotherVersionIsRefused) {
  write_record(*open(), {"a"});
  disk.flip_bit("log/0000000001.seg", 8, 1);
  EXPECT_EQ(refusal(), "log/0000000001.seg: version 3 of a log, expected 1");
}

TEST_F(LogTest, AMissingSegmentIsRefused) {
  const auto log = open(Durability::fsync, 1);
  for (const char* text : {"a", "b", "c"}) write_record(*log, {text});
  env.remove_file("log/0000000002.seg");
  EXPECT_TRUE(has(refusal(), "log/0000000002.seg: missing, expected records 2 to 2")) << refusal();
}

TEST_F(LogTest, ASegmentUnderAnotherNameIsRefused) {
  write_record(*open(), {"a"});
  env.rename_file("log/0000000001.seg", "log/0000000002.seg");
  EXPECT_EQ(refusal(), "log/0000000002.seg: holds segment 1, expected 2");
}

TEST_F(LogTest, DamageBeforeALaterRecordIsNotATornTail) {
  const auto log = open();
  log->begin_record();
  const LogPlace place = log->add_frame(1, log_bytes("abc"));
  log->commit();
  write_record(*log, {"d"});
  disk.flip_bit("log/0000000001.seg", place.offset, 0);
  const uint64_t frame = place.offset - sizeof(LogFrameHeader);
  EXPECT_EQ(refusal(), "log/0000000001.seg: offset " + std::to_string(frame) +
                           ": the checksum of a frame of 3 bytes does not fit its payload, "
                           "expected a frame of record 1; a frame of record 2 follows, so this is "
                           "damage and not the end of the log");
}

TEST_F(LogTest, BytesOfALogThatWasThereBeforeDoNotPass) {
  write_record(*open(), {"old"});
  const auto old = env.read_file("log/0000000001.seg");
  env.remove_file("log/0000000001.seg");
  DiskEnv later(disk, "host", 1);
  const auto log =
      open_log(later, {.folder = "log", .identity = "job", .durability = Durability::fsync}, {});
  log->begin_record();
  log->abandon();
  const uint64_t header = env.file_size("log/0000000001.seg");
  const auto bytes = env.read_file("log/0000000001.seg");
  const auto file = env.create_file("log/0000000001.seg");
  file->append(bytes);
  file->append(std::span(old).subspan(header));  // the blocks of a file that was removed
  EXPECT_EQ(records_of(env), Records{});
}

TEST_F(LogTest, AfterAFailedSyncTheRecordIsWrittenAnewElsewhere) {
  const auto log = open();
  write_record(*log, {"a"});
  disk.inject(Operation::sync, Failing::once);
  EXPECT_THROW(write_record(*log, {"lost"}), IoError);
  EXPECT_EQ(log->last_durable(), 1U);
  EXPECT_EQ(records_of(env), (Records{{1, "[1:a]"}}));
  EXPECT_EQ(write_record(*log, {"b"}), 2U);
  disk.crash_machine("host", *std::make_unique<Dice>(1, 0));
  EXPECT_EQ(records_of(env), (Records{{1, "[1:a]"}, {2, "[1:b]"}}));
}

TEST_F(LogTest, AJournalWhoseSyncFailsSaysWhatIsToBeWrittenAnew) {
  const auto log = open(Durability::journal);
  write_record(*log, {"a"});
  write_record(*log, {"b"});
  disk.inject(Operation::sync, Failing::once);
  EXPECT_THROW(log->seal(), IoError);
  EXPECT_EQ(log->last_durable(), 0U);
  EXPECT_EQ(records_of(env).size(), 2U) << "until something is written";
  EXPECT_EQ(write_record(*log, {"a and b"}), 1U);
  EXPECT_EQ(records_of(env), (Records{{1, "[1:a and b]"}}));
}

TEST_F(LogTest, AFullDiskTakesTheOpenRecordOnly) {
  for (const Durability durability : {Durability::journal, Durability::fsync}) {
    disk.set_capacity(20000);
    const auto log = open(durability);
    const uint64_t first = log->last_durable() + 1;
    write_record(*log, {"a"});
    EXPECT_TRUE(has(message_of<IoError>([&] { write_record(*log, {std::string(30000, 'x')}); }),
                    "No space left on device"));
    EXPECT_EQ(log->last_durable(), first);
    EXPECT_LT(disk.used(), 5000U) << "what was half written is cut off";
    EXPECT_EQ(write_record(*log, {"b"}), first + 1);
    EXPECT_EQ(records_of(env).back(), (Records::value_type{first + 1, "[1:b]"}));
  }
}

TEST_F(LogTest, TheFirstSegmentMayFailToBegin) {
  const auto log = open();
  disk.set_capacity(10);
  EXPECT_THROW(log->begin_record(), IoError);
  EXPECT_EQ(disk.used(), 0U);
  disk.set_capacity(100000);
  EXPECT_EQ(write_record(*log, {"a"}), 1U);
  EXPECT_EQ(records_of(env), (Records{{1, "[1:a]"}}));
}

TEST_F(LogTest, AReadErrorIsNotDamage) {
  write_record(*open(), {"a"});
  disk.inject(Operation::read, Failing::once);
  EXPECT_THROW(records_of(env), IoError);
  EXPECT_EQ(records_of(env).size(), 1U);
}

TEST_F(LogTest, WithoutDurabilityWhatWasSealedIsThere) {
  const auto log = open(Durability::none);
  write_record(*log, {"a"});
  EXPECT_EQ(records_of(env), Records{}) << "in a buffer";
  log->seal();
  disk.crash_machine("host", *std::make_unique<Dice>(1, 0));
  EXPECT_EQ(records_of(env), (Records{{1, "[1:a]"}}));
}

}  // namespace
}  // namespace argosy

#include "argosy/watch/status_line.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

constexpr const char* kServer =
    "status role=server index=1 pid=72 doing=serving since=31.2 step=410 queue=3 rows=90210 "
    "wait=worker:2,4-6:4.2:0-1,3:to%20end%20step%20411";
constexpr const char* kReader =
    "status role=worker index=0 pid=75 doing=reading since=12.0 epoch=1 step=410 "
    "lost=what%20it%20had note=part-0%20gives%20nothing";
constexpr const char* kWorker =
    "status role=worker index=3 pid=75 doing=fetching since=4.2 epoch=1 step=410 rate=10523.5 "
    "queue=2 staleness=1.50 wait=server:1:4.2::exchange%20912%3A%20rows%20of%20emb";

TEST(StatusLine, IsReadAsItWasWritten) {
  for (const char* line : {kServer, kWorker, kReader}) {
    const auto status = parse_status(line);
    ASSERT_TRUE(status) << line;
    EXPECT_EQ(format_status(*status), line);
  }
  const auto status = parse_status(kServer);
  ASSERT_EQ(status->waits.size(), 1U);
  EXPECT_EQ(status->waits[0].peers.listed, (std::vector<uint32_t>{2, 4, 5, 6}));
  EXPECT_EQ(status->waits[0].held.listed, (std::vector<uint32_t>{0, 1, 3}));
  EXPECT_EQ(status->waits[0].what, "to end step 411");
  EXPECT_EQ(parse_status(kWorker)->doing, Doing::fetching);
  EXPECT_EQ(parse_status(kWorker)->rows, std::nullopt);
  EXPECT_EQ(parse_status(kReader)->note, "part-0 gives nothing");
}

TEST(StatusLine, TextsOfAnyBytesAreOneWord) {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);
  const std::string word = escape(text);
  EXPECT_EQ(word.find_first_of(" \n=:"), std::string::npos);
  EXPECT_EQ(unescape(word), text);
  for (const char* bad : {"%", "%2", "%2g", "a%+1"}) EXPECT_EQ(unescape(bad), std::nullopt) << bad;
}

TEST(StatusLine, FitsIntoOneWriteToAPipeWhateverWaits) {
  ProcessStatus status{.role = "server", .note = std::string(5000, ' ')};
  Numbers even;
  for (uint32_t i = 0; i < 2000; i += 2) even.listed.push_back(i);
  for (int i = 0; i < 100; ++i)
    status.waits.push_back({.role = "worker",
                            .peers = even,
                            .seconds = static_cast<double>(i),
                            .held = even,
                            .what = std::string(5000, ':')});
  const std::string line = format_status(status);
  EXPECT_LT(line.size(), kLongestStatusLine);
  const auto read = parse_status(line);
  ASSERT_TRUE(read);
  ASSERT_FALSE(read->waits.empty());
  EXPECT_EQ(read->waits[0].seconds, 99);  // the longest
  EXPECT_TRUE(read->waits[0].held.more);
  EXPECT_TRUE(read->waits[0].held.may_have(1998));
}

TEST(StatusLine, LinesThatAreNoStatusAreNothing) {
  for (const char* line :
       {"", "status", "status x", "worker=1 epoch=1", "status index=1", "status role=chief",
        "status role=worker index=-1", "status role=worker doing=dreaming",
        "status role=worker since=-1", "status role=worker since=nan",
        "status role=worker rate=1e300", "status role=worker =1", "status role=worker  step=1",
        "status role=worker wait=server:1:2", "status role=worker wait=server:2-1:2::x",
        "status role=worker wait=server:1,1:2::x", "status role=worker wait=server:0-99999999:2::x",
        "status role=worker wait=:1:2::x"})
    EXPECT_FALSE(parse_status(line)) << line;
  EXPECT_TRUE(parse_status("status role=worker colour=blue"));
}

TEST(Doing, HasAWordAndAPhraseEach) {
  for (int i = 0; i <= static_cast<int>(Doing::ending); ++i) {
    const auto doing = static_cast<Doing>(i);
    EXPECT_EQ(doing_of(word(doing)), doing);
    EXPECT_FALSE(phrase(doing).empty());
  }
  EXPECT_EQ(word(Doing::ending), "ending");  // the last one: the table has the order of the names
}

}  // namespace
}  // namespace argosy

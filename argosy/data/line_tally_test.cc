#include "argosy/data/line_tally.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy {
namespace {

TEST(LineTally, KeepsTheFirstBadLines) {
  LineTally tally(1.0);
  for (uint64_t line = 1; line <= 50; ++line) tally.bad("part-0", line, "no label");
  tally.good();
  EXPECT_EQ(tally.lines(), 51U);
  EXPECT_EQ(tally.bad_lines(), 50U);
  EXPECT_EQ(tally.first_bad().size(), LineTally::kMostKept);
  EXPECT_EQ(tally.first_bad()[1].text(), "part-0:2: no label");
  EXPECT_NO_THROW(tally.finish());
}

TEST(LineTally, ToleratesBadLinesAtTheStartButNotTooManyInAll) {
  LineTally tally(0.1);
  for (uint64_t line = 1; line <= 40; ++line) tally.bad("f", line, "bad");
  EXPECT_THROW(tally.finish(), DataError);
  for (int i = 0; i < 500; ++i) tally.good();
  EXPECT_NO_THROW(tally.finish());
  for (uint64_t line = 1; line <= 15; ++line) tally.bad("f", 1000 + line, "bad");
  EXPECT_THROW(tally.bad("f", 2000, "bad"), DataError);
  try {
    tally.finish();
    FAIL();
  } catch (const DataError& e) {
    EXPECT_EQ(std::string(e.what()),
              "56 of 556 lines are bad, max_bad_ratio allows 0.1; f:1: bad; f:2: bad; f:3: bad");
  }
}

TEST(LineTally, MergesThreads) {
  LineTally a(0.5), b(0.5);
  a.good();
  b.bad("f", 3, "bad");
  a.merge(b);
  EXPECT_EQ(a.lines(), 2U);
  EXPECT_EQ(a.first_bad()[0].line, 3U);
  EXPECT_THROW(LineTally(1.5), ConfigError);
}

}  // namespace
}  // namespace argosy

#include "argosy/launch/comebacks.h"

#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

Comebacks::Time at(std::chrono::milliseconds time) { return Comebacks::Time(time); }
ProcessStatus report(const std::string& lost) {
  return {.role = "server", .index = 1, .lost = lost};
}

TEST(Comebacks, SayHowOftenHowLongAndWhatWasLost) {
  Comebacks one;
  EXPECT_EQ(one.count(), 0U);
  one.failed(at(1000ms));
  EXPECT_EQ(one.text("server 1"),
            "server 1 was started again once and has not said that it was back");
  one.take(report(""), at(1200ms));  // it is there and has nothing back yet
  one.take(report("nothing"), at(1400ms));
  one.take(report("nothing"), at(1900ms));
  EXPECT_EQ(one.text("server 1"),
            "server 1 was started again once and was back after 0.4 s; lost: nothing");
  one.failed(at(3000ms));
  one.failed(at(3500ms));  // before it was back
  one.take(report("what it learned since step 12"), at(4500ms));
  EXPECT_EQ(one.count(), 3U);
  EXPECT_EQ(one.text("server 1"),
            "server 1 was started again 3 times and was back after 0.4 s, 1.5 s; lost: what it "
            "learned since step 12");
}

}  // namespace
}  // namespace argosy::launch

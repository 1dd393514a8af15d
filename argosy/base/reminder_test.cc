#include "argosy/base/reminder.h"

#include <gtest/gtest.h>

#include <vector>

namespace argosy {
namespace {

using namespace std::chrono_literals;

TEST(Reminder, IsDueAtGrowingIntervals) {
  const Reminder::Time start{};
  Reminder reminder(start, 5s);
  std::vector<int64_t> seconds;
  for (auto time = 0s; time <= 2000s; time += 1s)
    if (reminder.due(start + time)) seconds.push_back(time.count());
  EXPECT_EQ(seconds,
            (std::vector<int64_t>{5, 10, 20, 40, 80, 160, 320, 620, 920, 1220, 1520, 1820}));
  EXPECT_EQ(reminder.next(), start + 2120s);
  EXPECT_EQ(reminder.since(), start);
}

}  // namespace
}  // namespace argosy

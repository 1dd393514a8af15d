#include "argosy/base/thread.h"

#include <gtest/gtest.h>

#include <atomic>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/base/test_support.h"
#include "argosy/base/thread_team.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

TEST(Thread, IsStoppedAndJoinedByItsEnd) {
  std::string order;
  {
    Mutex mutex;
    CondVar never;
    const Thread thread(
        "waits", [&, text = std::make_unique<std::string>("stopped")](const std::stop_token& stop) {
          const Lock lock(mutex);
          EXPECT_FALSE(never.wait(mutex, stop, [] { return false; }));
          order += *text;
        });
  }
  EXPECT_EQ(order, "stopped");
}

TEST(Thread, AnotherInItsPlaceStopsTheFirst) {
  std::atomic<int> ended = 0;
  const auto wait = [&](const std::stop_token& stop) {
    while (!stop.stop_requested()) sleep_for(1us);
    ++ended;
  };
  Thread thread("first", wait);
  thread = Thread("second", wait);
  EXPECT_EQ(ended, 1);
  Thread moved = std::move(thread);
  EXPECT_FALSE(thread.joinable());  // NOLINT: checks the moved-from state
  moved.request_stop();
  moved.join();
  EXPECT_FALSE(moved.joinable());
  EXPECT_EQ(ended, 2);
}

TEST(Thread, SleepsAtLeastAsLong) {
  const auto start = std::chrono::steady_clock::now();
  sleep_for(5ms);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 5ms);
}

TEST(ThreadTeam, DoesEachJobOnce) {
  ThreadTeam team(4);
  EXPECT_EQ(team.threads(), 4U);
  for (size_t jobs = 0; jobs < 100; ++jobs) {
    std::vector<std::atomic<int>> done(jobs);
    team.run(jobs, [&](size_t job, size_t thread) {
      EXPECT_LT(thread, 4U);
      ++done[job];
    });
    for (const auto& times : done) EXPECT_EQ(times, 1);
  }
}

TEST(ThreadTeam, ThrowsWhatAJobThrowsAndGoesOn) {
  ThreadTeam team(3);
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(message_of<DataError>([&] {
                team.run(10, [](size_t job, size_t) { check<DataError>(job != 5, "job 5"); });
              }),
              "job 5");
    std::atomic<int> done = 0;
    team.run(10, [&](size_t, size_t) { ++done; });
    EXPECT_EQ(done, 10);
  }
}

}  // namespace
}  // namespace argosy

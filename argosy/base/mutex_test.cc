#include "argosy/base/mutex.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

namespace argosy {
namespace {

using namespace std::chrono_literals;

/// A number that threads wait for.
class Counter {
 public:
  void add(int n) {
    const Lock lock(mutex_);
    value_ += n;
    changed_.notify_all();
  }
  void wait_for(int value) {
    const Lock lock(mutex_);
    while (value_ < value) changed_.wait(mutex_);
  }
  bool wait_for(int value, const std::stop_token& stop) {
    const Lock lock(mutex_);
    return changed_.wait(mutex_, stop, [&]() REQUIRES(mutex_) { return value_ >= value; });
  }
  bool wait_for(int value, Scheduler::Time deadline) {
    const Lock lock(mutex_);
    return changed_.wait_until(mutex_, deadline,
                               [&]() REQUIRES(mutex_) { return value_ >= value; });
  }
  /// With the lock held, which threads that stop need to end their waits.
  void stop(std::stop_source& source) {
    const Lock lock(mutex_);
    source.request_stop();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int value_ GUARDED_BY(mutex_) = 0;
};

TEST(CondVar, WakesThreadsWithAndWithoutStopTokens) {
  for (int round = 0; round < 50; ++round) {
    Counter counter, seen;
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i](const std::stop_token& stop) {
        if (i % 2 == 0)
          counter.wait_for(3);
        else
          EXPECT_TRUE(counter.wait_for(3, stop));
        seen.add(1);
      });
    }
    for (int i = 0; i < 3; ++i) counter.add(1);
    seen.wait_for(4);
  }
}

TEST(CondVar, AStopEndsTheWaitWhoeverHasTheLock) {
  for (int round = 0; round < 200; ++round) {
    Counter counter;
    std::stop_source stop;
    bool came = true;
    {
      const std::jthread thread([&] { came = counter.wait_for(1, stop.get_token()); });
      if (round % 2 == 0)
        counter.stop(stop);
      else
        stop.request_stop();
    }
    EXPECT_FALSE(came);
  }
}

TEST(CondVar, DeadlinesPass) {
  Counter counter;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(counter.wait_for(1, start + 20ms));
  EXPECT_GE(std::chrono::steady_clock::now(), start + 20ms);
  counter.add(1);
  EXPECT_TRUE(counter.wait_for(1, start));

  Mutex mutex;
  CondVar never;
  const Lock lock(mutex);
  EXPECT_FALSE(never.wait_until(mutex, start));
  EXPECT_FALSE(never.wait_for(mutex, 1ms, [] { return false; }));
  const std::stop_source stop;
  EXPECT_FALSE(never.wait_for(mutex, stop.get_token(), 1ms, [] { return false; }));
}

TEST(CondVar, LeavesTheMutexLocked) {
  Mutex mutex;
  CondVar never;
  mutex.lock();
  never.wait_until(mutex, {});
  std::jthread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  {
    const Unlocked open(mutex);
    std::jthread([&] { const Lock lock(mutex); }).join();
  }
  std::jthread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  mutex.unlock();
}

}  // namespace
}  // namespace argosy

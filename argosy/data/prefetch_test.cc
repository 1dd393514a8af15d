#include "argosy/data/prefetch.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/net/simulation.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

constexpr size_t kLanes = 3, kBatches = 7, kDepth = 2;
constexpr auto kLimit = 1h;

/// Batches 100 lane + number, at their own pace; lane 1 has the fewest.
std::vector<Prefetch::Produce> producers(uint64_t seed) {
  std::vector<Prefetch::Produce> all;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    all.emplace_back([random = RandomStream(seed, lane), lane, number = size_t{0}](
                         Batch& out, const std::stop_token&) mutable {
      sleep_for(1ms * random.below(number, 100));
      out.size = 100 * lane + number++;
      return number <= (lane == 1 ? 2 : kBatches);
    });
  }
  return all;
}

TEST(Prefetch, TheOrderDoesNotDependOnThePace) {
  std::vector<size_t> expected;
  for (size_t number = 0; number < kBatches; ++number)
    for (size_t lane = 0; lane < kLanes; ++lane)
      if (lane != 1 || number < 2) expected.push_back(100 * lane + number);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<size_t> order;
    Simulation simulation(seed);
    simulation.start_thread("", "trainer", [&] {
      Prefetch prefetch(producers(seed), kDepth);
      for (Batch batch; prefetch.next(batch);) order.push_back(batch.size);
    });
    simulation.run(kLimit);
    EXPECT_EQ(order, expected);
  }
}

TEST(Prefetch, EveryBatchIsTakenOnceByWhoeverAsks) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<size_t> taken;
    Simulation simulation(seed);
    simulation.start_thread("", "trainer", [&] {
      Prefetch prefetch(producers(seed), kDepth);
      const auto take_all = [&] {
        for (Batch batch; prefetch.next(batch);) taken.push_back(batch.size);
      };
      const Thread other("other trainer", take_all);
      take_all();
    });
    simulation.run(kLimit);
    std::ranges::sort(taken);
    EXPECT_EQ(taken.size(), 2 * kBatches + 2);
    EXPECT_EQ(std::ranges::adjacent_find(taken), taken.end());
  }
}

TEST(Prefetch, MayEndAtAnyTime) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    simulation.start_thread("", "trainer", [&] {
      Prefetch prefetch(producers(seed), kDepth);
      Batch batch;
      for (uint64_t i = 0; i < seed % 10; ++i) EXPECT_TRUE(prefetch.next(batch));
    });
    simulation.run(kLimit);
  }
}

TEST(Prefetch, ThrowsWhatAProducerThrewWhenItsTurnComes) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    simulation.start_thread("", "trainer", [&] {
      auto all = producers(seed);
      all[1] = [](Batch&, const std::stop_token&) -> bool { fail<DataError>("a bad line"); };
      Prefetch prefetch(std::move(all), kDepth);
      Batch batch;
      EXPECT_TRUE(prefetch.next(batch));
      EXPECT_EQ(message_of<DataError>([&] { prefetch.next(batch); }), "a bad line");
    });
    simulation.run(kLimit);
  }
}

}  // namespace
}  // namespace argosy

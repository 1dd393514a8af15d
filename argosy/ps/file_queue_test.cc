#include "argosy/ps/file_queue.h"

#include <gtest/gtest.h>

#include <set>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/world/dice.h"

namespace argosy::ps {
namespace {

using Numbers = std::vector<uint32_t>;

/// What the only lane of a worker takes until nothing is left for it.
Numbers take_all(FileQueue& queue, uint32_t worker, const FileQueue::Pass& pass,
                 Stealing stealing) {
  Numbers taken;
  while (const auto file = queue.take({worker, 0}, pass, taken, stealing)) taken.push_back(*file);
  return taken;
}

TEST(FileQueue, GivesEachWorkerItsShareInOrder) {
  FileQueue queue(3);
  const FileQueue::Pass pass{1, 0, 8};
  EXPECT_EQ(take_all(queue, 1, pass, Stealing::off), (Numbers{3, 4, 5}));
  EXPECT_EQ(take_all(queue, 0, pass, Stealing::off), (Numbers{0, 1, 2}));
  EXPECT_EQ(take_all(queue, 2, pass, Stealing::off), (Numbers{6, 7}));
}

TEST(FileQueue, WhoIsFreeTakesFromTheLongestShare) {
  FileQueue queue(3);
  const FileQueue::Pass pass{1, 0, 9};
  EXPECT_EQ(queue.take({0, 0}, pass, {}, Stealing::on), 0U);
  EXPECT_EQ(queue.take({1, 0}, pass, {}, Stealing::on), 3U);
  EXPECT_EQ(take_all(queue, 2, pass, Stealing::on), (Numbers{6, 7, 8, 2, 5, 1, 4}));
}

TEST(FileQueue, LanesOfAWorkerTakeFromOneShare) {
  FileQueue queue(1);
  const FileQueue::Pass pass{1, 0, 3};
  EXPECT_EQ(queue.take({0, 1, 2}, pass, {}, Stealing::off), 1U);
  EXPECT_FALSE(queue.take({0, 1, 2}, pass, Numbers{1}, Stealing::off));
  EXPECT_EQ(queue.take({0, 0, 2}, pass, {}, Stealing::off), 0U);
  EXPECT_EQ(queue.take({0, 0, 2}, pass, Numbers{0}, Stealing::off), 2U);
}

TEST(FileQueue, AWorkerThatIsStartedAgainReadsTheSameFilesInTheSameOrder) {
  FileQueue queue(2);
  const FileQueue::Pass pass{1, 0, 6};
  const Numbers before = take_all(queue, 0, pass, Stealing::on);
  EXPECT_EQ(before, (Numbers{0, 1, 2, 5, 4, 3}));
  EXPECT_EQ(take_all(queue, 0, pass, Stealing::on), before);
  EXPECT_EQ(take_all(queue, 1, pass, Stealing::on), Numbers{});
}

TEST(FileQueue, WhatALostWorkerLeftIsTakenByOthersInTheNextPass) {
  FileQueue queue(2);
  const FileQueue::Pass first{1, 0, 4}, second{1, 1, 4};
  EXPECT_EQ(queue.take({0, 0}, first, {}, Stealing::off), 0U);
  EXPECT_EQ(take_all(queue, 1, first, Stealing::off), (Numbers{2, 3}));
  EXPECT_EQ(queue.trained(first, Numbers{3, 2}), (Numbers{2, 3}));
  EXPECT_EQ(take_all(queue, 1, second, Stealing::off), (Numbers{1, 0}));
  EXPECT_EQ(queue.trained(second, Numbers{1, 0}), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(take_all(queue, 0, {1, 2, 4}, Stealing::on), Numbers{});
}

TEST(FileQueue, WhoIsLateMayStillSayWhatItTrained) {
  FileQueue queue(2);
  const FileQueue::Pass first{1, 0, 2}, second{1, 1, 2};
  EXPECT_EQ(queue.take({0, 0}, first, {}, Stealing::off), 0U);
  EXPECT_EQ(queue.take({1, 0}, second, {}, Stealing::off), 1U);
  EXPECT_EQ(queue.trained(first, Numbers{0}), Numbers{0});
  EXPECT_FALSE(queue.take({0, 0}, first, Numbers{0}, Stealing::off));
  EXPECT_EQ(take_all(queue, 0, {1, 2, 2}, Stealing::on), Numbers{1});
}

TEST(FileQueue, AServerThatCameBackLearnsWhatWorkersHold) {
  FileQueue after(2);
  const FileQueue::Pass pass{3, 0, 4};
  EXPECT_FALSE(after.take({0, 0}, pass, Numbers{0, 1}, Stealing::off));
  EXPECT_EQ(take_all(after, 1, pass, Stealing::on), (Numbers{2, 3}));
}

TEST(FileQueue, EpochsBeginAnewAndDoNotComeBack) {
  FileQueue queue(1);
  EXPECT_EQ(take_all(queue, 0, {1, 0, 2}, Stealing::on), (Numbers{0, 1}));
  EXPECT_EQ(take_all(queue, 0, {2, 0, 2}, Stealing::on), (Numbers{0, 1}));
  EXPECT_FALSE(queue.take({0, 0}, {1, 0, 2}, {}, Stealing::on));
  EXPECT_EQ(queue.trained({1, 0, 2}, Numbers{0}), Numbers{});
  EXPECT_EQ(take_all(queue, 0, {2, 1, 2}, Stealing::on), (Numbers{0, 1}));
}

TEST(FileQueue, FewerFilesThanWorkersAreDealtOutToo) {
  FileQueue queue(3);
  EXPECT_FALSE(queue.take({2, 0}, {1, 0, 1}, {}, Stealing::off));
  EXPECT_EQ(queue.take({0, 0}, {1, 0, 1}, {}, Stealing::off), 0U);
}

TEST(FileQueue, WhatCannotBeIsRefused) {
  FileQueue queue(2);
  queue.take({0, 0}, {1, 0, 4}, {}, Stealing::on);
  EXPECT_EQ(
      message_of<DataError>([&] {
        queue.take({1, 0}, {1, 0, 5}, {}, Stealing::on);
      }),
      "a worker sees 5 files where others see 4: files that are shared out must be the same for "
      "every worker");
  EXPECT_EQ(message_of<DataError>([&] { queue.trained({1, 0, 4}, Numbers{4}); }), "file 4 of 4");
  EXPECT_EQ(message_of<DataError>([&] {
              queue.take({1, 0}, {1, 0, 4}, Numbers{4}, Stealing::on);
            }),
            "file 4 of 4");
  EXPECT_EQ(message_of<DataError>([&] {
              queue.trained({2, 0, UINT32_MAX}, {});
            }),
            "4294967295 files to be shared out, expected at most 1048576");
  EXPECT_EQ(message_of<DataError>([&] {
              queue.take({0, 1, 1}, {1, 0, 4}, {}, Stealing::on);
            }),
            "lane 1 of 1, expected at most 4096");
}

TEST(FileQueue, AnotherServerGivesTheSameFilesInTheSameOrder) {
  const FileQueue::Pass pass{1, 0, 8};
  FileQueue queue(2);
  const Numbers first = take_all(queue, 0, pass, Stealing::on);
  EXPECT_EQ(first.size(), 8U);
  const uint64_t version = queue.version();
  queue.trained(pass, Numbers{3, 4});
  EXPECT_GT(queue.version(), version);
  FileQueue again(2);
  again.recover(queue.past());
  EXPECT_EQ(take_all(again, 0, pass, Stealing::on), first);
  EXPECT_EQ(take_all(again, 1, pass, Stealing::on), Numbers());
  EXPECT_EQ(again.trained(pass, {}), (Numbers{3, 4}));
}

/// Workers are lost for good by chance, all but the first; the others go on to the next pass.
TEST(FileQueue, EveryFileIsTrainedWhateverHappensToWorkers) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed, 0);
    const auto workers = static_cast<uint32_t>(1 + dice.below(5));
    const Stealing stealing = dice.hit(0.5) ? Stealing::off : Stealing::on;
    FileQueue::Pass pass{1, 0, static_cast<uint32_t>(1 + dice.below(20))};
    FileQueue queue(workers);
    std::vector<bool> dead(workers);
    std::set<uint32_t> trained;
    size_t times = 0, wasted = 0;
    for (; trained.size() < pass.files; ++pass.number) {
      ASSERT_LT(pass.number, workers + 1);
      for (uint32_t worker = 0; worker < workers; ++worker) {
        if (dead[worker]) continue;
        const Numbers taken = take_all(queue, worker, pass, stealing);
        dead[worker] = worker > 0 && dice.hit(0.2);
        (dead[worker] ? wasted : times) += taken.size();
        if (dead[worker]) continue;
        queue.trained(pass, taken);
        trained.insert(taken.begin(), taken.end());
      }
    }
    EXPECT_EQ(times, pass.files) << wasted << " were lost";
  }
}

}  // namespace
}  // namespace argosy::ps

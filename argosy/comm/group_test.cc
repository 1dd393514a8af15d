#include "argosy/comm/group.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <latch>

#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/comm/test_groups.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

/// The error message of each rank; "" if it succeeds.
std::vector<std::string> messages(const std::string& backend, int ranks,
                                  const std::function<void(Group&)>& f,
                                  Env::Duration deadline = 60s) {
  std::vector<std::string> all(static_cast<size_t>(ranks));
  on_group(
      backend, ranks,
      [&](Group& group) {
        try {
          f(group);
        } catch (const Error& e) {
          all[static_cast<size_t>(group.rank())] = e.what();
        }
      },
      [&](GroupOptions& options) { options.deadline = deadline; });
  return all;
}

class Groups : public testing::TestWithParam<std::string> {
 protected:
  /// Rank 0 and the others make these calls: all must end, with both of them shown.
  static void expect_mismatch(const std::function<void(Group&)>& first,
                              const std::function<void(Group&)>& others, const std::string& shown,
                              const std::string& also) {
    const auto all = messages(GetParam(), 3, [&](Group& group) {
      group.barrier();
      group.rank() == 0 ? first(group) : others(group);
      group.barrier();
    });
    for (const std::string& text : all) {
      EXPECT_TRUE(has(text, shown) && has(text, also)) << text;
      EXPECT_TRUE(has(text, "rank 0")) << text;
    }
  }
};

TEST_P(Groups, ShowBothSidesOfCallsThatDiffer) {
  std::vector<float> few(10), many(50'000), more(50'016);
  std::vector<double> wide(10);
  const auto sum = [](auto& data, Reduce op = Reduce::sum) {
    return [data, op](Group& group) mutable { group.all_reduce(std::span(data), op); };
  };
  expect_mismatch(sum(few), sum(many), "all_reduce 2: sum of 10 f32",
                  "all_reduce 2: sum of 50000 f32");
  expect_mismatch(sum(many), sum(more), "50000 f32", "50016 f32");
  expect_mismatch(sum(few), sum(wide), "10 f32", "10 f64");
  expect_mismatch(sum(few), sum(few, Reduce::max), "sum of 10", "max of 10");
  expect_mismatch([](Group& group) { group.barrier(); }, sum(many), "barrier 2", "all_reduce 2");
  expect_mismatch(
      [&](Group& group) {
        std::vector<float> data(10);
        group.broadcast<float>(data, 1);
      },
      [&](Group& group) {
        std::vector<float> data(10);
        group.broadcast<float>(data, 0);
      },
      "root 1", "root 0");
}

TEST_P(Groups, ShowBothSidesOfAReceiveThatFindsSomethingElse) {
  expect_mismatch(
      [](Group& group) {
        std::vector<float> data(10);
        group.receive<float>(data, 1);
      },
      [](Group& group) { group.barrier(); }, "receive 1: 10 f32", "barrier 2");
  const auto all = messages(GetParam(), 2, [](Group& group) {
    std::vector<float> data(group.rank() == 0 ? 10 : 12);
    group.rank() == 0 ? group.send<float>(data, 1) : group.receive<float>(data, 0);
    group.barrier();
  });
  for (const std::string& text : all)
    EXPECT_TRUE(has(text, "10 f32") && has(text, "12 f32")) << text;
}

TEST_P(Groups, ShowBothSidesOfSubGroupsThatDiffer) {
  const auto all = messages(GetParam(), 2, [](Group& group) {
    const std::vector<int> both = {0, 1}, turned = {1, 0};
    group.sub_group(group.rank() == 0 ? both : turned);
  });
  for (const std::string& text : all)
    EXPECT_TRUE(has(text, "sub_group 1: ranks with hash")) << text;
}

TEST_P(Groups, NameARankThatHasLeft) {
  const auto all = messages(GetParam(), 3, [](Group& group) {
    std::vector<float> data(100'000);
    group.all_reduce<float>(data);
    if (group.rank() == 2) return;
    group.all_reduce<float>(data);
  });
  for (const int rank : {0, 1}) {
    const std::string& text = all[static_cast<size_t>(rank)];
    EXPECT_TRUE(has(text, "rank 2")) << text;
    EXPECT_TRUE(has(text, "has left the group")) << text;
  }
  EXPECT_EQ(all[2], "");
}

TEST_P(Groups, NameARankThatDoesNotComeInTime) {
  std::latch given_up(2);
  const auto all = messages(
      GetParam(), 3,
      [&](Group& group) {
        std::vector<float> data(100'000);
        group.all_reduce<float>(data);
        if (group.rank() == 2) {
          return given_up.wait();
        }
        try {
          group.all_reduce<float>(data);
        } catch (const IoError&) {
          given_up.count_down();
          throw;
        }
      },
      200ms);
  for (const int rank : {0, 1}) {
    const std::string& text = all[static_cast<size_t>(rank)];
    EXPECT_TRUE(has(text, "has not come to") && has(text, "within 0.2 s")) << text;
  }
}

TEST_P(Groups, StayBrokenAfterAFailure) {
  messages(GetParam(), 2, [](Group& group) {
    std::vector<float> data(group.rank() == 0 ? 5 : 6);
    Work work = group.start(calls::all_reduce(std::span(data)));
    const std::string first = message_of<Error>([&] { work.wait(); });
    EXPECT_TRUE(has(first, "5 f32") && has(first, "6 f32")) << first;
    EXPECT_EQ(message_of<Error>([&] { group.barrier(); }), first);
    EXPECT_EQ(message_of<Error>([&] { group.start(calls::all_reduce(std::span(data))); }), first);
  });
}

TEST_P(Groups, RefuseWhatThisRankAloneGetsWrong) {
  on_group(GetParam(), 2, [](Group& group) {
    std::vector<float> data(7), two(2);
    EXPECT_EQ(message_of<ConfigError>([&] { group.broadcast<float>(data, 2); }),
              "broadcast: no rank 2 in a group of 2");
    EXPECT_EQ(message_of<ConfigError>([&] { group.send<float>(data, group.rank()); }),
              "send: rank " + std::to_string(group.rank()) + " is this one itself");
    EXPECT_EQ(message_of<ConfigError>([&] { group.all_gather<float>(two, data); }),
              "all_gather: 7 elements, expected 2 for each of 2 ranks");
    const std::vector<int> twice = {1, 1};
    EXPECT_EQ(message_of<ConfigError>([&] { group.sub_group(twice); }),
              "sub_group: rank 1, expected each of 0 to 1 at most once");
    group.all_reduce<float>(data);  // as if nothing had been
  });
}

INSTANTIATE_TEST_SUITE_P(All, Groups, testing::Values("inproc", "shm", "tcp", "hierarchical"),
                         [](const auto& info) { return info.param; });

class Circles : public testing::TestWithParam<std::string> {
 protected:
  static constexpr size_t kMany = 12'000'000;  // more than any socket takes without a reader

  static void expect_circle(int ranks, const std::function<void(Group&)>& f,
                            const std::string& shown, const std::string& also) {
    for (const std::string& text : messages(GetParam(), ranks, f))
      EXPECT_TRUE(has(text, "messages wait for each other in a circle") && has(text, shown) &&
                  has(text, also))
          << text;
  }
};

TEST_P(Circles, OfTwoSendsAreRefused) {
  expect_circle(
      2,
      [](Group& group) {
        std::vector<float> data(kMany);
        group.send<float>(data, 1 - group.rank());
        group.receive<float>(data, 1 - group.rank());
      },
      "is in send 1: 12000000 f32, root 0", "is in send 1: 12000000 f32, root 1");
}

TEST_P(Circles, OfTwoReceivesAreRefused) {
  expect_circle(
      2,
      [](Group& group) {
        std::vector<float> data(10);
        group.receive<float>(data, 1 - group.rank());
      },
      "is in receive 1: 10 f32, root 0", "is in receive 1: 10 f32, root 1");
}

TEST_P(Circles, OfManyAreRefused) {
  expect_circle(
      4,
      [](Group& group) {
        std::vector<float> data(kMany);
        group.send<float>(data, (group.rank() + 1) % 4);
      },
      "is in send 1: 12000000 f32, root 0", "is in send 1: 12000000 f32, root 3");
}

/// Rank 0 begins when the others have waited for longer than it takes to find a circle.
TEST_P(Circles, AreNotSeenWhereARankIsOnlyLate) {
  RankLog log;
  on_group(
      GetParam(), 3,
      [&](Group& group) {
        std::vector<float> data(kMany / 4, static_cast<float>(group.rank()));
        if (group.rank() == 0) {
          EXPECT_TRUE(log.await({"rank 1 has been in receive", "rank 2 has been in receive"}))
              << log.text();
        }
        if (group.rank() != 0) group.receive<float>(data, group.rank() - 1);
        if (group.rank() != 2) group.send<float>(data, group.rank() + 1);
        if (group.rank() == 2) group.send<float>(data, 0);
        if (group.rank() == 0) group.receive<float>(data, 2);
        EXPECT_EQ(data.back(), 0);
      },
      [&](GroupOptions& options) {
        options.patience = 3s;
        options.log = log.writer();
      });
}

INSTANTIATE_TEST_SUITE_P(All, Circles, testing::Values("shm", "tcp", "hierarchical"),
                         [](const auto& info) { return info.param; });

class LongWaits : public testing::TestWithParam<std::string> {};

/// Only the second call is held up for certain: in the first one, any rank may be late on a busy
/// machine.
TEST_P(LongWaits, NameWhoHoldsThemUp) {
  RankLog log;
  on_group(
      GetParam(), 3,
      [&](Group& group) {
        std::vector<float> data(100'000);
        group.all_reduce<float>(data);
        if (group.rank() == 2) {
          EXPECT_TRUE(
              log.await({"rank 0 has been in all_reduce 2", "rank 1 has been in all_reduce 2",
                         ": it waits for rank 2 (127.0.0."}))
              << log.text();
        }
        group.all_reduce<float>(data);
      },
      [&](GroupOptions& options) {
        options.patience = 50ms;
        options.log = log.writer();
      });
}

INSTANTIATE_TEST_SUITE_P(All, LongWaits, testing::Values("shm", "tcp", "hierarchical"),
                         [](const auto& info) { return info.param; });

/// Floats whose sum depends on the order.
std::vector<float> rough(int rank, size_t count) {
  const RandomStream random(3, static_cast<uint64_t>(rank));
  std::vector<float> all(count);
  for (size_t i = 0; i < count; ++i)
    all[i] = static_cast<float>(random.uniform(2 * i) - 0.5) *
             static_cast<float>(1 << random.below(2 * i + 1, 20));
  return all;
}

TEST(Deterministic, EveryBackendGivesTheBitsOfSumsInRankOrder) {
  for (const size_t count : {100UL, 70'001UL, 1'200'001UL})
    for (const int ranks : {2, 3, 4}) {
      std::vector<float> expected = rough(0, count);
      for (int rank = 1; rank < ranks; ++rank) {
        const std::vector<float> next = rough(rank, count);
        for (size_t i = 0; i < count; ++i) expected[i] += next[i];
      }
      for (const std::string backend : {"inproc", "shm", "tcp", "hierarchical"}) {
        if (launched_test() && (backend != "shm" || ranks != launched_test()->ranks)) continue;
        on_group(
            backend, ranks,
            [&](Group& group) {
              std::vector<float> data = rough(group.rank(), count);
              group.all_reduce<float>(data);
              EXPECT_EQ(std::memcmp(data.data(), expected.data(), count * sizeof(float)), 0)
                  << backend << " of " << ranks;
              std::vector<float> result(count);
              group.reduce<float>(rough(group.rank(), count), result, 0);
              if (group.rank() == 0) {
                EXPECT_EQ(std::memcmp(result.data(), expected.data(), count * sizeof(float)), 0)
                    << backend << " of " << ranks;
              }
            },
            [](GroupOptions& options) { options.deterministic = true; });
      }
    }
}

TEST(StartedCalls, AreMadeByWhoWaitsWithoutOverlap) {
  for (const char* const backend : {"inproc", "shm", "tcp"})
    on_group(backend, 3, [](Group& group) {
      group.set_overlap(false);
      std::vector<float> first(3000, 1), second(10, 2), third(10, 3);
      Work one = group.start(calls::all_reduce(std::span(first)));
      Work two = group.start(calls::all_reduce(std::span(second)));
      EXPECT_EQ(first.front(), 1);
      one.wait();
      EXPECT_EQ(first, std::vector<float>(3000, 3));
      EXPECT_EQ(second.front(), 2);
      group.all_reduce<float>(third);  // not before what was started
      EXPECT_EQ(second, std::vector<float>(10, 6));
      EXPECT_EQ(third, std::vector<float>(10, 9));
      two.wait();
      group.start(calls::all_reduce(std::span(third)));
      group.set_overlap(true);
      EXPECT_EQ(third, std::vector<float>(10, 27));
    });
}

TEST(Messages, AreKeptUntilTheyAreReceived) {
  for (const char* backend : {"inproc", "shm"})
    on_group(backend, 2, [](Group& group) {
      std::vector<int64_t> one = {7};
      std::vector<float> two = {1, 2, 3};
      if (group.rank() == 0) {
        group.send(std::span<const int64_t>(one), 1);
        group.send(std::span<const float>(two), 1);
        group.barrier();
        return;
      }
      std::vector<int64_t> first(1);
      std::vector<float> second(3);
      group.barrier();
      group.receive(std::span(first), 0);
      group.receive(std::span(second), 0);
      EXPECT_EQ(first, one);
      EXPECT_EQ(second, two);
    });
}

/// The number of open descriptors of this process, and of mappings that ranks share.
struct Held {
  size_t descriptors = 0, mappings = 0;
};

Held held() {
  Held all;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
    ++all.descriptors;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (has(line, "memfd:argosy")) ++all.mappings;
  return all;
}

TEST(EndOfGroups, LeavesNothing) {
  const Held before = held();
  for (int round = 0; round < 50; ++round)
    on_group(round % 2 == 0 ? "shm" : "hierarchical", 3, [](Group& group) {
      const std::vector<int> some = {0, 2};
      const auto part = group.sub_group(some);
      group.arena(1000);
      std::vector<float> data(3000);
      group.all_reduce<float>(data);
      if (part) part->all_reduce<float>(data);
    });
  const Held after = held();
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.mappings, 0U);
}

}  // namespace
}  // namespace argosy::comm

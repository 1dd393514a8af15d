// Ranks that are processes, one of which is killed at a random moment.
#include "argosy/base/rng.h"
#include "argosy/comm/test_rank_process.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 4, kKills = 12;
constexpr auto kNamedWithin = 10s;

void work_for_ever(std::unique_ptr<Group> owned) {
  Group& group = *owned;
  std::vector<float> data(60'000);
  const std::vector<int> pair = {0, 3};
  const auto part = group.sub_group(pair);
  while (true) {
    group.all_reduce<float>(data);
    group.barrier();
    group.broadcast<float>(data, 1);
    if (part) part->all_reduce<float>(std::span(data).first(100));
    Work work = group.start(calls::all_reduce(std::span(data)));
    work.wait();
  }
}

class KilledRank : public testing::TestWithParam<std::string> {};

TEST_P(KilledRank, IsNamedByAllOthers) {
  const uint64_t seed = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const RandomStream random(seed);
  for (uint64_t round = 0; round < kKills; ++round) {
    TestRanks test(kRanks, GetParam() == "hierarchical" ? 2 : kRanks);
    std::vector<std::unique_ptr<RankProcess>> ranks;
    for (int rank = 0; rank < kRanks; ++rank)
      ranks.push_back(std::make_unique<RankProcess>(test, rank, GetParam(), work_for_ever));
    for (Descriptor& socket : test.sockets) socket.reset();
    for (const auto& rank : ranks) ASSERT_TRUE(rank->is_connected());
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(2 * round, 50'000)));
    const auto victim = static_cast<int>(random.below(2 * round + 1, kRanks));
    ranks[static_cast<size_t>(victim)]->kill();

    const std::string name = "rank " + std::to_string(victim) + " (" +
                             test.endpoints[static_cast<size_t>(victim)].text();
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim) continue;
      const std::string text = ranks[static_cast<size_t>(rank)]->last_words(kNamedWithin);
      EXPECT_NE(text.find(name), std::string::npos)
          << "rank " << rank << " says '" << text << "', killed was " << name;
    }
  }
}

/// Killed before it has met any rank, or after it has met some.
TEST_P(KilledRank, IsNamedByThoseWhoStillMeet) {
  const uint64_t seed = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const RandomStream random(seed);
  for (uint64_t round = 0; round < 3; ++round) {
    TestRanks test(3, GetParam() == "hierarchical" ? 2 : 3);
    const auto start = [&](int rank) {
      return std::make_unique<RankProcess>(
          [&, rank] {
            GroupOptions options = test.options(rank, GetParam());
            for (Descriptor& other : test.sockets) other.reset();
            options.join_within = 3s;
            return options;
          },
          [](std::unique_ptr<Group> group) {
            while (true) group->barrier();
          });
    };
    const auto first = start(0), victim = start(1);
    test.sockets[1].reset();
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(round, 60'000)));
    victim->kill();
    const auto last = start(2);
    for (Descriptor& socket : test.sockets) socket.reset();
    for (const RankProcess* rank : {first.get(), last.get()}) {
      const std::string text = rank->last_words(kNamedWithin);
      EXPECT_NE(text.find("rank 1 (" + test.endpoints[1].text()), std::string::npos) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, KilledRank, testing::Values("shm", "tcp", "hierarchical"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace argosy::comm

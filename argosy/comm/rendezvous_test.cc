// How ranks meet.
#include <sys/socket.h>

#include <random>

#include "argosy/base/test_support.h"
#include "argosy/comm/test_groups.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

TEST(Rendezvous, TakesRanksInAnyOrderOfTheirStart) {
  const auto env = real_env();
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    TestRanks test(3);
    for (Descriptor& socket : test.sockets) socket.reset();  // each binds its own
    std::vector<std::jthread> threads;
    for (const int rank : order) {
      threads.emplace_back([&, rank] {
        GroupOptions options = test.options(rank);
        options.listen_fd.reset();
        const auto group = connect_group(*env, options);
        std::vector<int32_t> data = {rank};
        group->all_reduce<int32_t>(data);
        EXPECT_EQ(data[0], 3);
      });
      std::this_thread::yield();
    }
  }
}

TEST(Rendezvous, NamesThoseWhoDoNotCome) {
  const auto env = real_env();
  TestRanks test(4);
  std::vector<std::string> texts(4);
  RankLog log;
  on_threads(4, [&](int rank) {
    GroupOptions options = test.options(rank);
    options.join_within = 300ms;
    options.patience = 100ms;
    options.log = log.writer();
    if (rank == 1 || rank == 3)
      ::close(*options.listen_fd);
    else
      texts[static_cast<size_t>(rank)] = message_of<IoError>([&] { connect_group(*env, options); });
  });
  const std::string missing = "rank 1 (" + test.endpoints[1].text() + "), rank 3 (" +
                              test.endpoints[3].text() + "): not there within 0.3 s";
  EXPECT_TRUE(has(texts[0], missing)) << texts[0];
  EXPECT_TRUE(has(texts[2], missing)) << texts[2];
  EXPECT_TRUE(has(log.text(), "rank 0 of 4 waits for rank 1 (" + test.endpoints[1].text()))
      << log.text();
}

TEST(Rendezvous, ShowsBothSidesOfRanksThatDisagreeAboutTheirNumber) {
  const auto env = real_env();
  TestRanks test(3);
  std::vector<std::string> texts(2);
  on_threads(2, [&](int rank) {
    GroupOptions options = test.options(rank);
    if (rank == 0) options.ranks.pop_back();
    texts[static_cast<size_t>(rank)] =
        message_of<ConfigError>([&] { connect_group(*env, options); });
  });
  for (const std::string& text : texts)
    EXPECT_TRUE(has(text, "rank 1 of 3 wants to join rank 0 of 2")) << text;
}

TEST(Rendezvous, ShowsBothSidesOfRanksWithOtherLists) {
  const auto env = real_env();
  TestRanks test(2);
  std::vector<std::string> texts(2);
  on_threads(2, [&](int rank) {
    GroupOptions options = test.options(rank);
    if (rank == 0) options.ranks[1].port = 1;
    texts[static_cast<size_t>(rank)] =
        message_of<ConfigError>([&] { connect_group(*env, options); });
  });
  for (const std::string& text : texts)
    EXPECT_TRUE(has(text, "rank 1 of 2 and rank 0 of 2 (") && has(text, "different lists")) << text;
}

TEST(Rendezvous, TurnsAwayARankOfAnotherJobAndWaitsForItsOwn) {
  const auto env = real_env();
  TestRanks test(2);
  std::jthread first([&] { connect_group(*env, test.options(0)); });
  GroupOptions stranger{.rank = 1,
                        .ranks = test.endpoints,
                        .listen_fd = ::dup(test.sockets[1].get()),
                        .job = "another",
                        .join_within = 60s};
  const std::string text = message_of<ConfigError>([&] { connect_group(*env, stranger); });
  EXPECT_TRUE(has(text, "is of job 'another'") && has(text, "is of job 'test'")) << text;
  connect_group(*env, test.options(1));
}

TEST(Rendezvous, TurnsAwayASecondProcessOfTheSameRank) {
  const auto env = real_env();
  TestRanks test(3);
  std::jthread zero([&] { connect_group(*env, test.options(0)); });
  std::jthread one;
  GroupOptions again = test.options(1);
  again.listen_fd = ::dup(*again.listen_fd);
  const auto both = [&](GroupOptions options) {
    return message_of<ConfigError>([&] { connect_group(*env, options); });
  };
  // Two processes share the socket of rank 1; the second one to come is refused.
  std::string texts[2];
  GroupOptions original = again;
  original.listen_fd = ::dup(*again.listen_fd);
  std::atomic<int> refused = 0;
  {
    std::jthread a([&] {
      texts[0] = both(original);
      ++refused;
    });
    std::jthread b([&] {
      texts[1] = both(again);
      ++refused;
    });
    while (refused == 0) std::this_thread::sleep_for(1ms);
    connect_group(*env, test.options(2));
  }
  const bool first_refused = has(texts[0], "is there already");
  EXPECT_TRUE(first_refused || has(texts[1], "is there already")) << texts[0] << texts[1];
}

TEST(Rendezvous, IsNotDisturbedByOthersWhoConnect) {
  const auto env = real_env();
  TestRanks test(2);
  const auto silent = connect_within(test.endpoints[0], 1s);
  const auto talker = connect_within(test.endpoints[0], 1s);
  const std::string noise(1000, 'x');
  ASSERT_EQ(::send(talker->get(), noise.data(), noise.size(), MSG_NOSIGNAL), 1000);
  on_threads(2, [&](int rank) { connect_group(*env, test.options(rank))->barrier(); });
}

TEST(Rendezvous, RefusesARankOutsideOfTheList) {
  const auto env = real_env();
  EXPECT_EQ(message_of<ConfigError>([&] {
              connect_group(*env, {.rank = 2, .ranks = {{"a", 1}}});
            }),
            "rank 2 of 1 endpoints, expected 0 to 0");
  TestRanks test(2, 1);
  const std::string text = message_of<ConfigError>(
      [&] { on_threads(2, [&](int rank) { connect_group(*env, test.options(rank, "shm")); }); });
  EXPECT_EQ(text, "backend shm: the ranks are on 2 hosts, expected one");
}

}  // namespace
}  // namespace argosy::comm

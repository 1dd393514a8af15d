// Ranks that find each other in files or by HTTP: processes that start in any order.
#include <sys/socket.h>

#include <filesystem>
#include <numeric>

#include "argosy/base/test_support.h"
#include "argosy/comm/http_store_server.h"
#include "argosy/comm/store.h"
#include "argosy/comm/test_rank_process.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

/// A port that is free now.
Endpoint free_endpoint() {
  const Descriptor socket = bind_to({"127.0.0.1", 0});
  return {"127.0.0.1", port_of(socket)};
}

enum class By : uint8_t { files, http };

class Meeting : public testing::TestWithParam<By> {
 protected:
  GroupOptions options(int rank, int ranks, const std::string& job = "test") const {
    MeetingPlace place{.ranks = ranks, .host = "127.0.0.1"};
    if (GetParam() == By::files)
      place.folder = folder_.path();
    else
      place.http = http_;
    return {.rank = rank, .meeting = place, .job = job, .join_within = 60s, .deadline = 60s};
  }
  using Ranks = std::vector<std::unique_ptr<RankProcess>>;
  /// Each adds its number, and says the sum.
  std::unique_ptr<RankProcess> start(const GroupOptions& options) const {
    return std::make_unique<RankProcess>([&] { return options; },
                                         [](std::unique_ptr<Group> group) {
                                           std::vector<int32_t> data = {1 << group->rank()};
                                           group->all_reduce<int32_t>(data);
                                           throw IoError("sum " + std::to_string(data[0]));
                                         });
  }
  static void expect_sum(const Ranks& ranks, int sum) {
    for (const auto& rank : ranks) EXPECT_EQ(rank->last_words(60s), "csum " + std::to_string(sum));
  }

  const TestFolder folder_;
  const Endpoint http_ = free_endpoint();
};

TEST_P(Meeting, TakesProcessesInAnyOrder) {
  std::vector<int> order = {0, 1, 2};
  do {
    Ranks ranks;
    for (const int rank : order) ranks.push_back(start(options(rank, 3)));
    expect_sum(ranks, 7);
  } while (std::ranges::next_permutation(order).found);
}

TEST_P(Meeting, NamesThoseWhoDoNotCome) {
  Ranks ranks;
  for (const int rank : {0, 2}) {
    GroupOptions some = options(rank, 4);
    some.join_within = rank == 0 ? 1s : 20s;  // rank 0 tells the others
    ranks.push_back(start(some));
  }
  for (const auto& rank : ranks) {
    const std::string text = rank->last_words(60s);
    EXPECT_TRUE(has(text, "rank 1, rank 3: not there within 1 s; rank 0 of 4 of job 'test'"))
        << text;
  }
}

TEST_P(Meeting, NamesTheFirstRankWhereItDoesNotCome) {
  const auto env = real_env();
  GroupOptions some = options(1, 2);
  some.join_within = 300ms;
  const std::string text = message_of<IoError>([&] { connect_group(*env, some); });
  EXPECT_TRUE(has(text, "rank 0: not there within 0.3 s; rank 1 of 2 of job 'test'")) << text;
}

TEST_P(Meeting, ShowsBothSidesOfRanksThatDisagreeAboutTheirNumber) {
  Ranks ranks;
  ranks.push_back(start(options(1, 2)));
  ranks.push_back(start(options(0, 3)));
  for (const auto& rank : ranks) {
    const std::string text = rank->last_words(60s);
    EXPECT_TRUE(has(text, "rank 1 of 2 (127.0.0.1:") && has(text, "wants to join rank 0 of 3"))
        << text;
  }
}

TEST_P(Meeting, RefusesASecondProcessOfTheSameRank) {
  Ranks ranks;
  for (const int rank : {1, 1, 0}) ranks.push_back(start(options(rank, 2)));
  int refused = 0;
  for (const auto& rank : ranks) {
    const std::string text = rank->last_words(60s);
    if (has(text, "rank 1 of job 'test' is there already"))
      ++refused;
    else
      EXPECT_EQ(text, "csum 3");
  }
  EXPECT_EQ(refused, 1);
}

INSTANTIATE_TEST_SUITE_P(All, Meeting, testing::Values(By::files, By::http), [](const auto& info) {
  return info.param == By::files ? "Files" : "Http";
});

using MeetingInFiles = Meeting;

TEST_P(MeetingInFiles, IsNotMisledByWhatAnEarlierJobHasLeft) {
  // All that a job of the same name writes, by ranks that are no more.
  Ranks first;
  for (const int rank : {0, 1}) {
    GroupOptions some = options(rank, 3);
    first.push_back(start(some));
  }
  const std::string left = folder_.path() + "/test/";
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!std::filesystem::exists(left + "rank.1") && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(std::filesystem::exists(left + "rank.1"));
  first.clear();  // killed
  std::ofstream(left + "rank.2") << "stale";
  std::ofstream(left + "list") << "0123456789abcdef 1 127.0.0.1:1 2 127.0.0.1:1 3 127.0.0.1:1";

  Ranks ranks;
  for (const int rank : {2, 1, 0}) ranks.push_back(start(options(rank, 3)));
  expect_sum(ranks, 7);
  ranks.clear();
  EXPECT_TRUE(std::filesystem::is_empty(left));
}

TEST_P(MeetingInFiles, KeepsJobsApart) {
  Ranks one, other;
  for (const int rank : {0, 1}) {
    one.push_back(start(options(rank, 2, "one/../job")));
    other.push_back(start(options(rank, 2, "other")));
  }
  expect_sum(one, 3);
  expect_sum(other, 3);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/one%2F..%2Fjob"));
}

INSTANTIATE_TEST_SUITE_P(All, MeetingInFiles, testing::Values(By::files),
                         [](const auto&) { return "Files"; });

TEST(HttpStore, KeepsTextsByJobAndName) {
  const HttpStoreServer server({"127.0.0.1", 0});
  const Endpoint at{"127.0.0.1", server.port()};
  const auto one = http_store(at, "one"), two = http_store(at, "t w o");
  const std::string large(300'000, 'x');
  EXPECT_TRUE(one->put("a", "text of one"));
  EXPECT_TRUE(two->put("a", large));
  EXPECT_EQ(one->find("a"), "text of one");
  EXPECT_EQ(two->find("a"), large);
  EXPECT_FALSE(one->find("b"));
  one->remove("a");
  EXPECT_FALSE(one->find("a"));
  EXPECT_EQ(two->place(), "http://" + at.text());
}

TEST(HttpStore, IsNotThereBeforeItsServer) {
  const auto store = http_store(free_endpoint(), "job");
  EXPECT_FALSE(store->put("a", "b"));
  EXPECT_FALSE(store->find("a"));
}

TEST(HttpStore, AnswersWhateverIsSent) {
  const HttpStoreServer server({"127.0.0.1", 0});
  const Endpoint at{"127.0.0.1", server.port()};
  const auto answer = [&](const std::string& request) {
    const auto socket = connect_within(at, 5s);
    EXPECT_EQ(::send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL),
              std::ssize(request));
    std::string text;
    char bytes[512];
    pollfd ready{socket->get(), POLLIN, 0};
    while (::poll(&ready, 1, 10'000) == 1) {
      const ssize_t n = ::recv(socket->get(), bytes, sizeof(bytes), 0);
      if (n <= 0) break;
      text.append(bytes, static_cast<size_t>(n));
    }
    return text.substr(0, text.find("\r\n"));
  };
  EXPECT_EQ(answer("PUT /a/b HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc"), "HTTP/1.1 200 OK");
  EXPECT_EQ(answer("GET /a/b HTTP/1.0\r\n\r\n"), "HTTP/1.1 200 OK");
  EXPECT_EQ(answer("GET /a/c HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(answer("POST /a/b HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(answer("nonsense\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(answer("PUT /a HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n"),
            "HTTP/1.1 400 Bad Request");
}

TEST(PathPart, KeepsNamesInsideTheirFolder) {
  EXPECT_EQ(path_part("job-1_a.b"), "job-1_a.b");
  EXPECT_EQ(path_part("../x y"), "%2E.%2Fx%20y");
}

}  // namespace
}  // namespace argosy::comm

#include "argosy/watch/status_report.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>

namespace argosy {
namespace {

using namespace std::chrono_literals;

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends.data()), 0); }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  std::string read_line() const {
    std::string line;
    constexpr int kDeadline = 60000;  // ms
    pollfd ready{ends[0], POLLIN, 0};
    for (char c = 0; ::poll(&ready, 1, kDeadline) == 1 && ::read(ends[0], &c, 1) == 1 && c != '\n';)
      line += c;
    return line;
  }
  std::array<int, 2> ends{-1, -1};
};

TEST(StatusReport, WritesWhatItSeesAgainAndAgain) {
  const Pipe pipe;
  uint64_t step = 0;
  const StatusReport report(
      pipe.ends[1], [&] { return ProcessStatus{.role = "worker", .step = ++step}; }, 1ms);
  for (uint64_t i = 1; i <= 5; ++i) {
    const auto status = parse_status(pipe.read_line());
    ASSERT_TRUE(status);
    EXPECT_EQ(status->step, i);
  }
}

TEST(StatusReport, NeverWaitsForAReader) {
  const Pipe pipe;  // that blocks, and that nobody reads
  std::atomic<int> looks = 0;
  const StatusReport report(
      pipe.ends[1],
      [&] {
        ++looks;
        ProcessStatus status{.role = "worker"};
        status.waits.push_back({.role = "server", .what = std::string(300, 'x')});
        return status;
      },
      0ms);
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  constexpr int kManyPipes = 5000;  // of lines: several times what a pipe holds
  while (looks < kManyPipes && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_GE(looks, kManyPipes);
}

TEST(StatusReport, EndsWhenNobodyReadsAnyMore) {
  Pipe pipe;
  std::atomic<int> looks = 0;
  const StatusReport report(
      pipe.ends[1],
      [&] {
        ++looks;
        return ProcessStatus{.role = "worker"};
      },
      1ms);
  EXPECT_FALSE(pipe.read_line().empty());
  ::close(std::exchange(pipe.ends[0], -1));
  // A SIGPIPE would end this program here.
  int seen = -1;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (seen != looks && std::chrono::steady_clock::now() < deadline) {
    seen = looks;
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(seen, looks);
}

TEST(StatusReport, LooksAtNothingWhereNobodyAsks) {
  std::atomic<int> looks = 0;
  {
    const StatusReport report(
        -1,
        [&] {
          ++looks;
          return std::nullopt;
        },
        0ms);
    const StatusReport blind(1, {}, 0ms);
  }
  EXPECT_EQ(looks, 0);
}

}  // namespace
}  // namespace argosy

// Ranks that are processes, one of which is killed at a random moment.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "argosy/base/rng.h"
#include "argosy/comm/test_groups.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 4, kKills = 12;
constexpr auto kNamedWithin = 10s;

void work_for_ever(Group& group) {
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

/// A rank in a process of its own. It writes a byte when it is connected, and what it throws.
class RankProcess {
 public:
  RankProcess(TestRanks& test, int rank, const std::string& backend) {
    int ends[2];
    if (::pipe(ends) != 0) throw IoError("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      run(test, rank, backend, Descriptor(ends[1]));
    }
    ::close(ends[1]);
    output_ = Descriptor(ends[0]);
  }
  ~RankProcess() { kill(); }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  bool is_connected() const {
    char byte = 0;
    return ready(kPatience) && ::read(output_.get(), &byte, 1) == 1;
  }
  /// "": it has said nothing in time.
  std::string last_words(Clock::duration within) const {
    std::string text;
    const auto until = Clock::now() + within;
    char bytes[512];
    while (ready(until - Clock::now())) {
      const ssize_t n = ::read(output_.get(), bytes, sizeof(bytes));
      if (n <= 0) return text;
      text.append(bytes, static_cast<size_t>(n));
    }
    return "";
  }

 private:
  static constexpr auto kPatience = 60s;

  [[noreturn]] static void run(TestRanks& test, int rank, const std::string& backend,
                               const Descriptor& out) {
    const auto say = [&](const std::string& text) {
      if (::write(out.get(), text.data(), text.size()) < 0) ::_exit(2);
    };
    try {
      const auto env = real_env();
      GroupOptions options = test.options(rank, backend);
      for (Descriptor& other : test.sockets) other.reset();
      const auto group = connect_group(*env, options);
      say("c");
      work_for_ever(*group);
    } catch (const IoError& e) {
      say(e.what());
    }
    ::_exit(1);
  }
  bool ready(Clock::duration within) const {
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(within);
    pollfd waiting{output_.get(), POLLIN, 0};
    return ::poll(&waiting, 1, static_cast<int>(std::max<int64_t>(0, time.count()))) == 1;
  }

  pid_t pid_;
  Descriptor output_;
};

class KilledRank : public testing::TestWithParam<std::string> {};

TEST_P(KilledRank, IsNamedByAllOthers) {
  const uint64_t seed = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const RandomStream random(seed);
  for (uint64_t round = 0; round < kKills; ++round) {
    TestRanks test(kRanks, GetParam() == "hierarchical" ? 2 : kRanks);
    std::vector<std::unique_ptr<RankProcess>> ranks;
    for (int rank = 0; rank < kRanks; ++rank)
      ranks.push_back(std::make_unique<RankProcess>(test, rank, GetParam()));
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

INSTANTIATE_TEST_SUITE_P(All, KilledRank, testing::Values("shm", "tcp", "hierarchical"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace argosy

#pragma once

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "argosy/base/rng.h"
#include "argosy/comm/test_groups.h"

namespace argosy::comm {

/// A rank as a child process that does `work`. It writes a byte once it is connected, then what it
/// throws.
class RankProcess {
 public:
  using Work = std::function<void(std::unique_ptr<Group>)>;

  RankProcess(TestRanks& test, int rank, const std::string& backend, const Work& work)
      : RankProcess(
            [&] {
              GroupOptions options = test.options(rank, backend);
              for (Descriptor& other : test.sockets) other.reset();
              return options;
            },
            work) {}
  /// `options` is called in the new process.
  RankProcess(const std::function<GroupOptions()>& options, const Work& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw IoError("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      run(options, work, Descriptor(ends[1]));
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
  /// "" if it has written nothing in time.
  std::string last_words(std::chrono::steady_clock::duration within) const {
    std::string text;
    const auto until = std::chrono::steady_clock::now() + within;
    char bytes[512];
    while (ready(until - std::chrono::steady_clock::now())) {
      const ssize_t n = ::read(output_.get(), bytes, sizeof(bytes));
      if (n <= 0) return text;
      text.append(bytes, static_cast<size_t>(n));
    }
    return "";
  }

 private:
  static constexpr auto kPatience = std::chrono::seconds(60);

  [[noreturn]] static void run(const std::function<GroupOptions()>& options, const Work& work,
                               const Descriptor& out) {
    const auto say = [&](const std::string& text) {
      if (::write(out.get(), text.data(), text.size()) < 0) ::_exit(2);
    };
    try {
      const auto env = real_env();
      auto group = connect_group(*env, options());
      say("c");
      work(std::move(group));
    } catch (const Error& e) {
      say(e.what());
    }
    ::_exit(1);
  }
  bool ready(std::chrono::steady_clock::duration within) const {
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(within);
    pollfd waiting{output_.get(), POLLIN, 0};
    return ::poll(&waiting, 1, static_cast<int>(std::max<int64_t>(0, time.count()))) == 1;
  }

  pid_t pid_;
  Descriptor output_;
};

/// Ranks that work endlessly; several times one of them is killed at a random moment, and the
/// others name it within 10 s.
inline void kill_at_random(const RankProcess::Work& work) {
  constexpr int kRanks = 3, kKills = 4;
  const auto seed =
      static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const RandomStream random(seed);
  for (uint64_t round = 0; round < kKills; ++round) {
    TestRanks test(kRanks);
    std::vector<std::unique_ptr<RankProcess>> ranks;
    for (int rank = 0; rank < kRanks; ++rank)
      ranks.push_back(std::make_unique<RankProcess>(test, rank, "auto", work));
    for (Descriptor& socket : test.sockets) socket.reset();
    for (const auto& rank : ranks) ASSERT_TRUE(rank->is_connected());
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(2 * round, 200'000)));
    const auto victim = static_cast<int>(random.below(2 * round + 1, kRanks));
    ranks[static_cast<size_t>(victim)]->kill();
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim) continue;
      const std::string text =
          ranks[static_cast<size_t>(rank)]->last_words(std::chrono::seconds(10));
      EXPECT_NE(text.find("rank " + std::to_string(victim) + " ("), std::string::npos)
          << "rank " << rank << " says '" << text << "'";
    }
  }
}

}  // namespace argosy::comm

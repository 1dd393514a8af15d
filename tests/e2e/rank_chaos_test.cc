// Ranks that train together while one of them is killed at a random moment: the others name it and
// stop. ARGOSY_CHAOS_RANK_KILLS and ARGOSY_CHAOS_SEED set how many and which.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "argosy/base/test_support.h"
#include "tests/e2e/launched.h"
#include "tests/e2e/test_jobs.h"

namespace argosy::e2e {
namespace {

constexpr auto kNamedWithin = 10s;
constexpr auto npos = std::string::npos;

/// Passes of 50 ms, each of which ends with a save; the job never ends unaided.
const std::string kEndless = small_job(
    6000, 4, "  epochs: 100000\n  print_interval: 5\n  use_auc: True\n  test_data_dir: test\n");

int from_env(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoi(text);
}

enum class Moment : uint8_t { start, connected, training, pass_end };
constexpr std::array kMoments = {"its start", "the ranks have met", "the first steps",
                                 "the end of a pass"};

struct Plan {
  bool launcher;  // fleetrun, or processes that find each other in files
  int ranks, victim;
  std::string backend;
  Moment after;
  std::chrono::microseconds delay;

  std::string text() const {
    return fmt::format("rank {} of {} by {}, {} fleetrun, {} us after {}", victim, ranks, backend,
                       launcher ? "with" : "without", delay.count(),
                       kMoments.at(static_cast<size_t>(after)));
  }
};

Plan make_plan(std::mt19937_64& random) {
  const auto in = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  Plan plan{};
  plan.launcher = in(0, 1) == 1;
  plan.ranks = in(2, 4);
  plan.victim = in(0, plan.ranks - 1);
  plan.backend = in(0, 1) == 1 ? "shm" : "tcp";
  // Without a launcher nobody knows of a rank that has not come yet.
  plan.after = static_cast<Moment>(in(plan.launcher ? 0 : 1, 3));
  if (plan.after == Moment::connected) plan.backend = "shm";  // where it can be seen
  plan.delay = std::chrono::microseconds(in(0, plan.after == Moment::pass_end ? 20'000 : 150'000));
  return plan;
}

/// A job whose victim is killed, and what became of the others.
class RankChaos : public testing::Test {
 protected:
  void run(const Plan& plan) {
    SCOPED_TRACE(plan.text());
    const TestFolder folder;
    folder.write("config.yaml", kEndless);
    plan.launcher ? with_launcher(plan, folder.path()) : without_launcher(plan, folder.path());
  }

 private:
  /// Returns when the moment has come. `said`: what rank 0 has printed.
  static void wait_for(const Plan& plan, pid_t victim, const std::function<std::string()>& said) {
    const auto has = [&](const std::string& words) {
      return [&, words] { return said().find(words) != npos; };
    };
    if (plan.after == Moment::connected)
      launched::await(
          [&] {
            return launched::content(fmt::format("/proc/{}/maps", victim)).find("memfd:argosy") !=
                   npos;
          },
          "the ranks to meet");
    if (plan.after == Moment::training) launched::await(has("batch_id: 5,"), "the first steps");
    if (plan.after == Moment::pass_end) launched::await(has("epoch: 0 done"), "the first pass");
    std::this_thread::sleep_for(plan.delay);
  }

  static void with_launcher(const Plan& plan, const std::string& folder) {
    const std::string marker = fs::path(folder).filename().string();
    launched::Launch launch(folder, marker,
                            fmt::format("--nproc_per_node={} --backend={} --grace=5 '{}/argosy' "
                                        "train -m config.yaml",
                                        plan.ranks, plan.backend, ARGOSY_BIN_DIR));
    pid_t victim = 0;
    const auto appears = [&] {
      for (const launched::Found& found : launched::processes_with(
               {launched::marked(marker), fmt::format("PADDLE_TRAINER_ID={}", plan.victim)}))
        if (found.command == "argosy") victim = found.pid;
      return victim != 0;
    };
    launched::await(appears, "the victim");
    wait_for(plan, victim, [&] { return content(folder + "/log/workerlog.0"); });
    ::kill(victim, SIGKILL);
    const launched::Outcome outcome = launch.wait(kNamedWithin);
    EXPECT_NE(outcome.errors.find(fmt::format("worker {} failed: killed by signal 9", plan.victim)),
              npos)
        << outcome.errors;
    EXPECT_EQ(outcome.exit_code, 128 + SIGKILL) << outcome.errors;
    EXPECT_EQ(launched::left_running(marker), "");
  }

  static void without_launcher(const Plan& plan, const std::string& folder) {
    std::vector<std::unique_ptr<Process>> ranks;
    for (int rank = 0; rank < plan.ranks; ++rank)
      ranks.push_back(std::make_unique<Process>(
          folder, fmt::format("rank{}", rank), "argosy train -m config.yaml",
          Variables{{"PADDLE_TRAINER_ID", std::to_string(rank)},
                    {"PADDLE_TRAINERS_NUM", std::to_string(plan.ranks)},
                    {"PADDLE_GLOO_RENDEZVOUS", "2"},
                    {"PADDLE_GLOO_FS_PATH", folder + "/meet"},
                    {"POD_IP", "127.0.0.1"},
                    {"ARGOSY_BACKEND", plan.backend}}));
    Process& victim = *ranks[static_cast<size_t>(plan.victim)];
    wait_for(plan, victim.pid(), [&] { return ranks[0]->output(); });
    victim.kill();
    const auto killed = Clock::now();
    for (int rank = 0; rank < plan.ranks; ++rank) {
      if (rank == plan.victim) continue;
      Process& other = *ranks[static_cast<size_t>(rank)];
      EXPECT_GT(other.wait(), 0) << "rank " << rank << other.errors();
      EXPECT_LT(Clock::now() - killed, kNamedWithin) << "rank " << rank;
      EXPECT_NE(other.errors().find(fmt::format("rank {} (127.0.0.1:", plan.victim)), npos)
          << "rank " << rank << " says: " << other.errors();
    }
  }
};

TEST_F(RankChaos, TheKilledIsNamedByTheOthersWhoStop) {
  const int kills = from_env("ARGOSY_CHAOS_RANK_KILLS", 6);
  const int seed = from_env("ARGOSY_CHAOS_SEED", 1);
  std::printf("ARGOSY_CHAOS_SEED=%d ARGOSY_CHAOS_RANK_KILLS=%d\n", seed, kills);
  for (int kill = 0; kill < kills; ++kill) {
    std::mt19937_64 random(static_cast<uint64_t>(seed) * 1000003 + static_cast<uint64_t>(kill));
    run(make_plan(random));
    if (HasFailure()) FAIL() << "kill " << kill << " of seed " << seed;
  }
}

}  // namespace
}  // namespace argosy::e2e

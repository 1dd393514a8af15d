// Ranks on several machines, each a network namespace with its own address.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "argosy/base/test_support.h"
#include "tests/e2e/hosts.h"
#include "tests/e2e/launched.h"
#include "tests/e2e/small_job.h"

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using namespace argosy::launched;

constexpr auto kNamedWithin = 10s, kDeadWithin = 45s;
constexpr auto npos = std::string::npos;

/// The hosts of ranks, and the backend between them.
struct Placement {
  int hosts, each;
  std::string backend;

  std::string name() const { return fmt::format("{}x{}_{}", hosts, each, backend); }
};

class RankHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::obstacle(); !why.empty()) GTEST_SKIP() << why;
    hosts_.emplace(3);
    folder_.write("config.yaml", argosy::e2e::small_job(6000, 12,
                                                        "  epochs: 2\n  print_interval: 5\n"
                                                        "  deterministic: True\n"));
  }
  void TearDown() override {
    EXPECT_EQ(left_running(marker()), "");
    hosts_.reset();
  }

  std::string marker() const { return fs::path(folder_.path()).filename().string(); }
  std::string log(int host, int rank) const {
    return content(fmt::format("{}/log{}/workerlog.{}", folder_.path(), host, rank));
  }
  static std::string train(const std::string& settings) {
    return " '" ARGOSY_BIN_DIR "/argosy' train -m config.yaml -o " + settings;
  }
  Launches start(const Placement& at, const std::string& command) const {
    std::string ips;
    for (int host = 0; host < at.hosts; ++host)
      ips += (host == 0 ? "" : ",") + Hosts::address(host);
    Launches launches;
    // The last one first.
    for (int host = at.hosts - 1; host >= 0; --host)
      launches.insert(launches.begin(),
                      std::make_unique<Launch>(
                          folder_.path(), marker(),
                          fmt::format("--log_dir=log{} --ips={} --nproc_per_node={} --backend={} ",
                                      host, ips, at.each, at.backend) +
                              command,
                          hosts_->on(host)));
    return launches;
  }
  /// The saved model, file by file.
  std::string saved(const std::string& model) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() + "/" + model))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::ranges::sort(files);
    std::string all;
    for (const fs::path& file : files) all += file.filename().string() + content(file);
    return all;
  }

  const argosy::TestFolder folder_;
  std::optional<Hosts> hosts_;
};

class RankHostsTrain : public RankHosts, public testing::WithParamInterface<Placement> {};

/// Bit for bit what as many ranks on one machine find.
TEST_P(RankHostsTrain, AsOnOneMachine) {
  const Placement& at = GetParam();
  Launches launches = start(at, train("runner.model_save_path=many"));
  for (const Outcome& outcome : wait_all(launches))
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors << outcome.output;
  const std::string many = saved("many");

  const Placement here{1, at.hosts * at.each, "shm"};
  Launches alone = start(here, train("runner.model_save_path=one"));
  for (const Outcome& outcome : wait_all(alone))
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors << outcome.output;
  EXPECT_TRUE(!many.empty() && many == saved("one"));
}

INSTANTIATE_TEST_SUITE_P(On, RankHostsTrain,
                         testing::Values(Placement{2, 1, "auto"}, Placement{3, 1, "gloo"},
                                         Placement{2, 2, "auto"}, Placement{3, 2, "hierarchical"}),
                         [](const auto& info) { return info.param.name(); });

TEST_F(RankHosts, AKilledOneIsNamedOnAllMachines) {
  const Placement at{3, 2, "auto"};
  Launches launches = start(at, train("runner.epochs=100000"));
  constexpr int kVictim = 3;  // the second one of host 1
  await([&] { return log(0, 0).find("batch_id: 5,") != npos; }, "the training");
  pid_t victim = 0;
  for (const Found& found :
       processes_with({marked(marker()), "PADDLE_TRAINER_ID=" + std::to_string(kVictim)}))
    if (found.command == "argosy") victim = found.pid;
  ASSERT_NE(victim, 0);
  ::kill(victim, SIGKILL);
  for (const Outcome& outcome : wait_all(launches, kNamedWithin)) {
    // A rank that names it may end before its launcher hears of the victim's end.
    const bool by_launcher = outcome.errors.find("worker 3 failed: killed by signal 9") != npos;
    EXPECT_TRUE(by_launcher || outcome.errors.find("rank 3 (10.0.0.2:") != npos) << outcome.errors;
    EXPECT_EQ(outcome.exit_code, by_launcher ? 128 + SIGKILL : 1) << outcome.errors;
  }
}

/// Without a launcher the ranks themselves have to say it; the silence of a machine as well.
class RankHostsPlain : public RankHosts, public testing::WithParamInterface<bool> {};

TEST_P(RankHostsPlain, NameWhoIsLost) {
  const bool cut = GetParam();
  const std::string folder = folder_.path();
  const auto run = [&](int rank) {
    return fmt::format(
        "cd '{0}' && ARGOSY_E2E={1} PADDLE_TRAINER_ID={2} PADDLE_TRAINERS_NUM=3 POD_IP={3} "
        "PADDLE_GLOO_RENDEZVOUS=3 PADDLE_GLOO_HTTP_ENDPOINT={4}:7171 exec {5} '{6}/argosy' train "
        "-m config.yaml -o runner.epochs=100000 >out{2} 2>err{2}",
        folder, marker(), rank, Hosts::address(rank), Hosts::address(0), hosts_->on(rank),
        ARGOSY_BIN_DIR);
  };
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string line = run(rank);
    ranks.push_back(::fork());
    if (ranks.back() == 0) {
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
  }
  await([&] { return content(folder + "/out0").find("batch_id: 5,") != npos; }, "the training");
  cut ? hosts_->cut(2) : static_cast<void>(::kill(ranks[2], SIGKILL));
  const auto lost = Clock::now();
  for (int rank = 0; cut && rank < 2; ++rank)
    await(
        [&] {
          const std::string said = content(folder + "/err" + std::to_string(rank));
          return std::regex_search(
              said,
              std::regex("rank [01] has been in .* for 5 s: it waits for rank 2 \\(10.0.0.3:"));
        },
        "what rank " + std::to_string(rank) + " says", kNamedWithin);
  for (int rank = 0; rank < 2; ++rank) {
    int status = 0;
    await([&] { return ::waitpid(ranks[static_cast<size_t>(rank)], &status, WNOHANG) > 0; },
          "the end of rank " + std::to_string(rank));
    EXPECT_LT(Clock::now() - lost, cut ? kDeadWithin : kNamedWithin);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) > 0) << status;
    const std::string said = content(folder + "/err" + std::to_string(rank));
    EXPECT_NE(said.find("rank 2 (10.0.0.3:"), npos) << said;
  }
  ::kill(ranks[2], SIGKILL);
  ::waitpid(ranks[2], nullptr, 0);
}

/// Bit for bit as without it.
TEST_F(RankHosts, GoOnAfterTheirNetworkWasCutForAWhile) {
  const Placement at{3, 1, "auto"};
  Launches alone = start(at, train("runner.model_save_path=calm runner.epochs=40"));
  for (const Outcome& outcome : wait_all(alone)) ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;

  fs::remove_all(folder_.path() + "/log0");
  Launches launches = start(at, train("runner.model_save_path=cut runner.epochs=40"));
  await([&] { return log(0, 0).find("epoch: 1, batch_id: 5,") != npos; }, "the training");
  const auto lost = Clock::now();
  hosts_->cut(2);
  std::this_thread::sleep_until(lost + 8s);  // as long as the network is to be cut
  hosts_->mend(2);
  for (const Outcome& outcome : wait_all(launches))
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors << outcome.output;
  EXPECT_NE(log(0, 0).find("it waits for rank 2 (10.0.0.3:"), npos) << log(0, 0);
  EXPECT_TRUE(saved("cut") == saved("calm"));
}

INSTANTIATE_TEST_SUITE_P(When, RankHostsPlain, testing::Bool(), [](const auto& info) {
  return info.param ? "ItsMachineIsCutOff" : "ItIsKilled";
});

}  // namespace

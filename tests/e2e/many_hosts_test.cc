// fleetrun on several machines, each a network namespace with its own address: real trainings and
// small scripts; machines that are late, missing or cut off, and processes that are killed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "argosy/base/test_support.h"
#include "tests/e2e/hosts.h"
#include "tests/e2e/launch_lines.h"
#include "tests/e2e/launched.h"
#include "tests/e2e/small_job.h"

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using namespace argosy::launched;
using argosy::e2e::kTalkingScript;
using argosy::e2e::launch_lines;
using argosy::e2e::LaunchLine;

constexpr auto kExplained = 10s, kDeathNoticed = 45s;
constexpr auto npos = std::string::npos;

const std::string kConfig = argosy::e2e::small_job(8000, 6, R"(  test_data_dir: test
  sync_mode: async
  epochs: 2
  print_interval: 5
  use_auc: True
)");

/// The data stop in the middle, so the job runs until something happens to it.
constexpr const char* kEndless =
    " -o runner.epochs=1 'runner.pipe_command=head -n 600; sleep 1000'";

/// Every process that listens answers with its address; every worker asks all of them.
constexpr const char* kTalk = R"(
import os, socket, threading
env = os.environ
me = env.get("POD_IP", "") + ":" + env["PADDLE_PORT"] if "TRAINING_ROLE" in env else env["PADDLE_CURRENT_ENDPOINT"]
asked = env.get("PADDLE_PSERVERS_IP_PORT_LIST") or env["PADDLE_TRAINER_ENDPOINTS"]
askers = int(env["PADDLE_TRAINERS_NUM"])
def answer():
    listening = socket.socket(fileno=int(env["ARGOSY_LISTEN_FD"]))
    for _ in range(askers):
        listening.accept()[0].sendall(me.encode())
answering = threading.Thread(target=answer)
if "ARGOSY_LISTEN_FD" in env:
    answering.start()
if env.get("TRAINING_ROLE") != "PSERVER":
    for other in asked.split(","):
        host, port = other.rsplit(":", 1)
        answered = socket.create_connection((host, int(port)), 30).recv(100).decode()
        assert answered == other, (answered, other)
    print("I am", env["PADDLE_TRAINER_ID"], "of", askers, "and asked", asked)
if "ARGOSY_LISTEN_FD" in env:
    answering.join()
)";

class ManyHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::obstacle(); !why.empty()) GTEST_SKIP() << why;
    hosts_.emplace(3);
    folder_.write("config.yaml", kConfig);
    folder_.write("talk.py", kTalk);
  }
  void TearDown() override {
    EXPECT_EQ(left_running(marker()), "");
    hosts_.reset();
  }

  std::string marker() const { return fs::path(folder_.path()).filename().string(); }
  std::string log(int host, const std::string& name) const {
    return content(folder_.path() + "/log" + std::to_string(host) + "/" + name);
  }
  static std::string train() { return " '" ARGOSY_BIN_DIR "/argosy' train -m config.yaml"; }
  /// One server and one worker on each of the first hosts.
  static std::string lists(int hosts) {
    std::string servers, workers;
    for (int host = 0; host < hosts; ++host) {
      const std::string between = host == 0 ? "" : ",", at = Hosts::address(host);
      servers += between + at + ":6170";
      workers += between + at + ":6180";
    }
    return "--servers=" + servers + " --workers=" + workers;
  }

  std::unique_ptr<Launch> start(int host, const std::string& line,
                                const std::string& before = "") const {
    return std::make_unique<Launch>(folder_.path(), marker(),
                                    "--log_dir=log" + std::to_string(host) + " " + line,
                                    hosts_->on(host) + before);
  }
  Launches start_all(int hosts, const std::string& line) const {
    Launches launches;
    for (int host = 0; host < hosts; ++host) launches.push_back(start(host, line));
    return launches;
  }
  static void expect_success(const std::vector<Outcome>& outcomes) {
    for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  }
  /// Every launcher ended with the code and said the words.
  static void expect_failure(const std::vector<Outcome>& outcomes, int code,
                             const std::string& words) {
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.exit_code, code) << outcome.errors;
      EXPECT_NE(outcome.errors.find(words), npos) << outcome.errors;
    }
  }

  /// A training that every worker has begun and none ends.
  Launches start_endless(int hosts) const {
    Launches launches = start_all(hosts, lists(hosts) + train() + kEndless);
    for (int host = 0; host < hosts; ++host)
      await(
          [&] {
            return log(host, "workerlog." + std::to_string(host)).find("batch_id: 5,") != npos;
          },
          "the training on host " + std::to_string(host));
    return launches;
  }
  /// The process of a host, not what it has started itself.
  pid_t find(int host, const std::string& role) const {
    for (const Found& process : processes_with(
             {marked(marker()), "TRAINING_ROLE=" + role, "POD_IP=" + Hosts::address(host)}))
      if (process.command == "argosy") return process.pid;
    throw std::runtime_error("there is no " + role + " on host " + std::to_string(host));
  }

  /// As `argosy infer` finds it for the test data.
  double auc() const {
    const std::string out = folder_.path() + "/infer.out";
    const std::string line = "cd '" + folder_.path() +
                             "' && '" ARGOSY_BIN_DIR
                             "/argosy' infer -m config.yaml > infer.out 2>&1";
    EXPECT_EQ(std::system(line.c_str()), 0) << content(out);
    const std::string text = content(out);
    std::smatch found;
    double last = 0;
    for (auto at = text.cbegin(); std::regex_search(
             at, text.cend(), found, std::regex("done, loss: [0-9.]+, auc: ([0-9.]+)"));
         at = found.suffix().first)
      last = std::stod(found[1]);
    return last;
  }

  const argosy::TestFolder folder_;
  std::optional<Hosts> hosts_;
};

class ManyHostsTrain : public ManyHosts, public testing::WithParamInterface<int> {};

TEST_P(ManyHostsTrain, ForReal) {
  const int hosts = GetParam();
  Launches launches = start_all(hosts, lists(hosts) + train());
  expect_success(wait_all(launches));
  EXPECT_GT(auc(), 0.65);
  for (int host = 0; host < hosts; ++host) {
    const std::string server = log(host, "serverlog." + std::to_string(host));
    EXPECT_NE(server.find("Server listening on " + Hosts::address(host) + ":6170"), npos) << server;
    for (int worker = 0; worker < hosts; ++worker)
      EXPECT_NE(server.find("worker " + std::to_string(worker) + " has left"), npos) << server;
    for (int other = 0; other < hosts; ++other) {
      const std::string number = std::to_string(other);
      EXPECT_EQ(log(host, "serverlog." + number).empty(), other != host);
      EXPECT_EQ(log(host, "workerlog." + number).empty(), other != host);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, ManyHostsTrain, testing::Values(2, 3),
                         [](const auto& info) { return "Over" + std::to_string(info.param); });

TEST_F(ManyHosts, WorkersWithoutPortsAndHostsByName) {
  folder_.write("hosts", "127.0.0.1 localhost\n10.0.0.1 first\n10.0.0.2 second.cluster second\n");
  Launches launches;
  for (int host = 0; host < 2; ++host) {
    const std::string script = "mount --bind hosts /etc/hosts && exec \"$0\" \"$@\"";
    launches.push_back(start(host,
                             "--servers=first:6170,second:6170 --workers=first,second,second" +
                                 train() + " -o runner.epochs=1",
                             " sh -c '" + script + "'"));
  }
  expect_success(wait_all(launches));
  EXPECT_NE(log(1, "serverlog.1").find("server 1 of 2 at second:6170"), npos)
      << log(1, "serverlog.1");
  EXPECT_NE(log(1, "workerlog.2").find("batch_id: 5,"), npos) << log(1, "workerlog.2");
  EXPECT_EQ(log(0, "endpoints.log"), log(1, "endpoints.log"));
  EXPECT_EQ(log(0, "endpoints.log"),
            "PADDLE_TRAINER_ENDPOINTS: \nfirst:6172\nsecond:6173\nsecond:6174\n"
            "PADDLE_PSERVERS_IP_PORT_LIST: \nfirst:6170\nsecond:6170\n");
}

/// In every order; each comes when the earlier ones have said that they wait.
class ManyHostsLate : public ManyHosts, public testing::WithParamInterface<std::vector<int>> {};

TEST_P(ManyHostsLate, ComeInAnyOrder) {
  const std::vector<int>& order = GetParam();
  Launches launches;
  for (const int host : order) {
    for (const auto& earlier : launches)
      await([&] { return earlier->errors().find("fleetrun: waiting for ") != npos; },
            "what an early launcher says");
    launches.push_back(start(host, "--log_level=INFO " + lists(3) + " talk.py"));
  }
  expect_success(wait_all(launches));
  const std::string who = " of 3 and asked 10.0.0.1:6170,10.0.0.2:6170,10.0.0.3:6170\n";
  for (int host = 0; host < 3; ++host) {
    const std::string number = std::to_string(host);
    EXPECT_EQ(log(host, "workerlog." + number), "I am " + number + who);
  }
  if (order.front() != 0) return;
  const std::string said = launches.front()->errors();
  EXPECT_NE(said.find("waiting for 10.0.0.2, 10.0.0.3\n"), npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Orders, ManyHostsLate,
                         testing::Values(std::vector{0, 1, 2}, std::vector{1, 2, 0},
                                         std::vector{2, 0, 1}),
                         [](const auto& info) {
                           std::string name = "Hosts";
                           for (const int host : info.param) name += std::to_string(host);
                           return name;
                         });

TEST_F(ManyHosts, OneThatDoesNotComeIsNamedByAll) {
  Launches launches = start_all(2, "--timeout=2 " + lists(3) + " talk.py");
  const auto outcomes = wait_all(launches, 2s + kExplained);
  expect_failure(outcomes, 1, "10.0.0.3 did not come within 2 s");
  EXPECT_NE(outcomes[0].errors.find("there were 10.0.0.2"), npos) << outcomes[0].errors;
  EXPECT_NE(outcomes[1].errors.find("the launcher at 10.0.0.1:6170: "), npos) << outcomes[1].errors;
}

TEST_F(ManyHosts, WithoutTheFirstTheOthersSayWhere) {
  Launches launches;
  for (const int host : {1, 2})
    launches.push_back(start(host, "--timeout=2 " + lists(3) + " talk.py"));
  expect_failure(wait_all(launches, 2s + kExplained), 1,
                 "no launcher answers at 10.0.0.1:6170 for 2 s: the machine that starts server 0 "
                 "did not come");
}

/// The parameter: which of the three is cut off.
class ManyHostsCut : public ManyHosts, public testing::WithParamInterface<int> {};

TEST_P(ManyHostsCut, IsNoticedByAllWhenItIsSilent) {
  const int lost = GetParam();
  Launches launches = start_endless(3);
  hosts_->cut(lost);
  for (int host = 0; host < 3; ++host)
    await(
        [&] {
          const std::string said = launches[static_cast<size_t>(host)]->errors();
          // The first tells the hosts that are not cut off, unless it is cut off itself.
          return said.find("nothing is heard of the launcher at ") != npos;
        },
        "what host " + std::to_string(host) + " says", kExplained);
  const auto outcomes = wait_all(launches, kDeathNoticed);
  for (int host = 0; host < 3; ++host) {
    const Outcome& outcome = outcomes[static_cast<size_t>(host)];
    EXPECT_EQ(outcome.exit_code, 1) << outcome.errors;
    // The one that is cut off hears from nobody; others than the first hear from it only.
    const std::string named = host != lost ? Hosts::address(lost) + ":"
                              : lost == 0  ? ""
                                           : "10.0.0.1:";
    const std::string words = "fleetrun: elsewhere: the launcher at " + named;
    EXPECT_NE(outcome.errors.find(words), npos) << outcome.errors;
    EXPECT_NE(outcome.errors.find("is silent for 20 s"), npos) << outcome.errors;
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, ManyHostsCut, testing::Values(0, 2),
                         [](const auto& info) { return "Host" + std::to_string(info.param); });

/// The parameter: which of the three is cut off for some seconds.
class ManyHostsCutForAWhile : public ManyHosts, public testing::WithParamInterface<int> {};

TEST_P(ManyHostsCutForAWhile, GoOn) {
  const int lost = GetParam();
  const std::string go = folder_.path() + "/go";
  // Workers read on when they are let.
  Launches launches = start_all(
      3, lists(3) + train() +
             " -o runner.epochs=1 'runner.pipe_command=head -n 600; until [ -e go ]; do sleep 0.1; "
             "done; cat'");
  for (int host = 0; host < 3; ++host)
    await(
        [&] { return log(host, "workerlog." + std::to_string(host)).find("batch_id: 5,") != npos; },
        "the training on host " + std::to_string(host));
  const auto start = Clock::now();
  hosts_->cut(lost);
  std::this_thread::sleep_until(start + 8s);  // as long as the network is to be cut
  hosts_->mend(lost);
  folder_.write("go", "");
  const auto outcomes = wait_all(launches);
  expect_success(outcomes);
  for (const Outcome& outcome : outcomes)
    EXPECT_NE(outcome.errors.find("nothing is heard of the launcher at "), npos) << outcome.errors;
}

INSTANTIATE_TEST_SUITE_P(Hosts, ManyHostsCutForAWhile, testing::Values(0, 2),
                         [](const auto& info) { return "Host" + std::to_string(info.param); });

TEST_F(ManyHosts, ANetworkOfMachinesThatFindEachOther) {
  const std::string line = "--master=10.0.0.1:7000 --nnodes=3 --server_num=1 --worker_num=2 ";
  for (const bool ranks : {true, false}) {
    Launches launches;
    for (const int host : {2, 0, 1}) {  // rank 1 is host 2, rank 2 is host 1
      const std::string rank = " --rank=" + std::to_string((3 - host) % 3) + " ";
      launches.push_back(start(host, line + (ranks ? rank : "") + "talk.py"));
    }
    expect_success(wait_all(launches));
    const std::vector<int> hosts = ranks ? std::vector{0, 2, 1} : std::vector{0, 1, 2};
    for (int worker = 0; worker < 6; ++worker) {
      const std::string text =
          log(hosts[static_cast<size_t>(worker / 2)], "workerlog." + std::to_string(worker));
      std::string pattern = "I am " + std::to_string(worker) + " of 6 and asked ";
      for (size_t i = 0; i < hosts.size(); ++i)
        pattern += (i == 0 ? "" : ",") + Hosts::address(hosts[i]) + ":[0-9]+";
      EXPECT_TRUE(std::regex_match(text, std::regex(pattern + "\n"))) << text << pattern;
    }
    for (int host = 0; host < 3; ++host)
      fs::remove_all(folder_.path() + "/log" + std::to_string(host));
  }
}

TEST_F(ManyHosts, RanksTalkOverTheSocketsTheyInherit) {
  Launches launches =
      start_all(2, "--ips=10.0.0.1,10.0.0.2 --nproc_per_node=2 --start_port=6070 talk.py");
  expect_success(wait_all(launches));
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(log(rank / 2, "workerlog." + std::to_string(rank)),
              "I am " + std::to_string(rank) +
                  " of 4 and asked 10.0.0.1:6070,10.0.0.1:6071,10.0.0.2:6070,10.0.0.2:6071\n");
}

std::vector<LaunchLine> lines_of_two_hosts() {
  std::vector<LaunchLine> all = launch_lines();
  std::erase_if(
      all, [](const LaunchLine& line) { return line.hosts.empty() || line.script != "train.py"; });
  return all;
}

class ManyHostsLines : public ManyHosts, public testing::WithParamInterface<LaunchLine> {};

/// As it is printed, the same on both.
TEST_P(ManyHostsLines, Runs) {
  folder_.write("train.py", kTalkingScript);
  const std::string& cards = GetParam().cards;
  Launches launches;
  for (int host = 0; host < 2; ++host)
    launches.push_back(start(host, GetParam().flags + " train.py",
                             " env ARGOSY_EMULATED_DEVICES=8" +
                                 (cards.empty() ? "" : " CUDA_VISIBLE_DEVICES=" + cards)));
  expect_success(wait_all(launches));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ManyHostsLines, testing::ValuesIn(lines_of_two_hosts()),
                         [](const auto& line) { return line.param.name; });

/// The process killed, and how all launchers but a killed one report it.
struct Victim {
  const char* name;
  int host;
  std::string role;  // "": the launcher
  std::string words;

  friend void PrintTo(const Victim& victim, std::ostream* out) { *out << victim.name; }
};

class ManyHostsKilled : public ManyHosts, public testing::WithParamInterface<Victim> {};

TEST_P(ManyHostsKilled, IsExplainedByAll) {
  const Victim& victim = GetParam();
  Launches launches = start_endless(3);
  const bool launcher = victim.role.empty();
  ::kill(
      launcher ? launches[static_cast<size_t>(victim.host)]->pid() : find(victim.host, victim.role),
      SIGKILL);
  auto outcomes = wait_all(launches, kExplained);
  if (launcher) {
    EXPECT_EQ(outcomes[static_cast<size_t>(victim.host)].signal, SIGKILL);
    outcomes.erase(outcomes.begin() + victim.host);
    await([&] { return left_running(marker()).empty(); }, "the end of what it started");
  }
  expect_failure(outcomes, launcher ? 1 : 128 + SIGKILL, victim.words);
  if (!launcher) expect_failure(outcomes, 128 + SIGKILL, "ends with:\n  ");
}

INSTANTIATE_TEST_SUITE_P(
    Process, ManyHostsKilled,
    testing::Values(Victim{"FirstServer", 0, "PSERVER", "server 0 failed: killed by signal 9"},
                    Victim{"Server", 2, "PSERVER", "server 2 failed: killed by signal 9"},
                    Victim{"Worker", 1, "TRAINER", "worker 1 failed: killed by signal 9"},
                    Victim{"FirstLauncher", 0, "", "the launcher at 10.0.0.1:6170 is gone"},
                    Victim{"Launcher", 1, "", "the launcher at 10.0.0.2:"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace

// fleetrun while its processes and itself are killed at random moments, and many of it at once.
// ARGOSY_CHAOS_KILLS, ARGOSY_CHAOS_JOBS and ARGOSY_CHAOS_SEED set how many and which.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "argosy/base/test_support.h"
#include "tests/e2e/launched.h"
#include "tests/e2e/small_job.h"

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using namespace argosy::launched;

constexpr auto kDeadline = 30s;  // for a job of less than a second that something happened to
constexpr int kSignalled = 128, kNothingStarted = 2;

int from_env(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoi(text);
}

/// Every process writes lines, each first to its log and then to a file. Servers end when all
/// workers have.
constexpr const char* kScript = R"(
me=worker$PADDLE_TRAINER_ID
[ $TRAINING_ROLE = PSERVER ] && me=server$PADDLE_PORT
n=0
write() {
  line="$me ${ARGOSY_RESTART:-0} line $n of a process that may be killed at any moment"
  echo "$line"
  echo "$line" >> $me.${ARGOSY_RESTART:-0}.wrote
  n=$((n + 1))
  sleep 0.02
}
if [ $TRAINING_ROLE = PSERVER ]; then
  until [ $(ls | grep -c '^worker.*done$') = $PADDLE_TRAINERS_NUM ]; do write; done
  exit
fi
while [ $n -lt 12 ]; do write; done
touch $me.done
)";

const std::string kConfig =
    argosy::e2e::small_job(3000, 4, "  sync_mode: async\n  epochs: 1\n  print_interval: 10\n");

/// The fault of a job. `stopped` is for how long its victim is stopped before it is killed.
struct Plan {
  bool real;  // argosy train, not a script
  int servers, workers, restarts;
  bool launcher;  // is the victim, not one of its children
  int signal;
  std::chrono::milliseconds moment, stopped;

  std::string text() const {
    return fmt::format(
        "{} with {} servers, {} workers, {} restarts; signal {} to {} after {} ms, stopped for {} "
        "ms before",
        real ? "argosy train" : "a script", servers, workers, restarts, signal,
        launcher ? "the launcher" : "a child", moment.count(), stopped.count());
  }
};

Plan make_plan(std::mt19937_64& random) {
  const auto in = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  Plan plan{};
  plan.real = in(1, 8) == 1;
  plan.servers = in(1, 3);
  plan.workers = in(1, 4);
  plan.launcher = in(1, 3) == 1;
  plan.restarts = plan.real ? 0 : in(0, 1);
  // A server of argosy takes SIGTERM for the end of the job.
  const bool term = plan.launcher || !plan.real;
  plan.signal = std::array{SIGKILL, SIGSEGV, SIGTERM}[static_cast<size_t>(in(0, term ? 2 : 1))];
  plan.moment = std::chrono::milliseconds(in(0, plan.real ? 900 : 600));
  if (plan.signal == SIGKILL && in(0, 1) == 1) plan.stopped = std::chrono::milliseconds(in(1, 100));
  return plan;
}

/// One job and what happened to it.
class Job {
 public:
  Job(const Plan& plan, std::mt19937_64& random) : plan_(plan) {
    folder_.write("script", kScript);
    folder_.write("config.yaml", kConfig);
    const std::string command =
        plan.real ? " '" ARGOSY_BIN_DIR "/argosy' train -m config.yaml" : " sh script";
    Launch launch(folder_.path(), marker(),
                  fmt::format("--server_num={} --worker_num={} --max_restart={} --grace=5",
                              plan.servers, plan.workers, plan.restarts) +
                      command);
    std::this_thread::sleep_for(plan.moment);
    strike(launch, random);
    outcome_ = launch.wait(kDeadline);
  }

  void check() const {
    const auto context = [&] {
      return plan_.text() + "; struck " + struck_ + "\n" + outcome_.errors;
    };
    EXPECT_EQ(outcome_.errors.find("took too long"), std::string::npos) << context();
    EXPECT_TRUE(may_end_so()) << context() << "exit code " << outcome_.exit_code << ", signal "
                              << outcome_.signal << ", done " << complete();
    const bool failed = outcome_.exit_code == kSignalled + plan_.signal && !plan_.launcher;
    const std::string words = fmt::format("failed: killed by signal {}", plan_.signal);
    EXPECT_TRUE(!failed || outcome_.errors.find(words) != std::string::npos) << context();
    // The guard of a launcher that was killed comes after it.
    if (outcome_.signal != 0)
      await([&] { return left_running(marker()).empty(); }, "the end of all: " + context());
    EXPECT_EQ(left_running(marker()), "") << context();
    if (!plan_.real) check_logs(context());
  }

 private:
  std::string marker() const { return fs::path(folder_.path()).filename().string(); }

  void strike(const Launch& launch, std::mt19937_64& random) {
    pid_t victim = launch.pid();
    if (!plan_.launcher) {
      std::vector<Found> children;
      // A job that is over has none any more.
      await(
          [&] {
            for (const Found& found : processes_with({marked(marker())}))
              if (argosy::parent_of(found.pid) == launch.pid()) children.push_back(found);
            siginfo_t info{};
            ::waitid(P_PID, static_cast<id_t>(launch.pid()), &info, WEXITED | WNOHANG | WNOWAIT);
            return !children.empty() || info.si_pid != 0;
          },
          "a process to kill");
      if (children.empty()) return;
      const Found& chosen = children[random() % children.size()];
      victim = chosen.pid;
      struck_ = chosen.command;
      has_role_ = content(fmt::format("/proc/{}/environ", victim)).find("TRAINING_ROLE=") !=
                  std::string::npos;
    } else {
      struck_ = "the launcher";
    }
    if (plan_.stopped > 0ms) {
      ::kill(victim, SIGSTOP);
      std::this_thread::sleep_for(plan_.stopped);
    }
    ::kill(victim, plan_.signal);
  }

  /// All workers have done all that they had to do.
  bool complete() const {
    if (plan_.real) return fs::exists(folder_.path() + "/model/0");
    for (int worker = 0; worker < plan_.workers; ++worker)
      if (!fs::exists(fmt::format("{}/worker{}.done", folder_.path(), worker))) return false;
    return true;
  }

  bool may_end_so() const {
    const bool well = outcome_.exit_code == 0 && complete();
    const bool as_struck = outcome_.exit_code == kSignalled + plan_.signal;
    if (plan_.launcher) {
      // By a signal as well before it has begun to wait for SIGTERM.
      const bool told = plan_.signal == SIGTERM && as_struck;
      return outcome_.signal == plan_.signal || told || well;
    }
    if (struck_.empty() || struck_ == "argosy-guard") return well;
    // It may have been the check before the job, which is refused then, or not yet be itself.
    if (!has_role_) return well || as_struck || outcome_.exit_code == kNothingStarted;
    // A victim struck when all is done may have ended before.
    if (complete()) return well || as_struck;
    return plan_.restarts > 0 ? well : as_struck;
  }

  /// Every line that a process wrote is in its log, and the first worker's were shown.
  void check_logs(const std::string& context) const {
    std::string logs;
    const std::string log_dir = folder_.path() + "/log";
    if (fs::exists(log_dir))
      for (const auto& entry : fs::directory_iterator(log_dir)) logs += content(entry.path());
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().extension() != ".wrote") continue;
      EXPECT_NE(logs.find(content(entry.path())), std::string::npos) << entry << context;
    }
    if (outcome_.signal != 0) return;
    EXPECT_EQ(outcome_.output, content(log_dir + "/workerlog.0")) << context;
  }

  Plan plan_;
  const argosy::TestFolder folder_;
  std::string struck_;     // "": it was over before
  bool has_role_ = false;  // what was struck was known as a server or a worker
  Outcome outcome_;
};

TEST(Chaos, WhateverIsKilledNothingIsLeftAndTheLogsAreWhole) {
  const int kills = from_env("ARGOSY_CHAOS_KILLS", 20), seed = from_env("ARGOSY_CHAOS_SEED", 1);
  std::printf("ARGOSY_CHAOS_SEED=%d ARGOSY_CHAOS_KILLS=%d\n", seed, kills);
  for (int kill = 0; kill < kills; ++kill) {
    std::mt19937_64 random(static_cast<uint64_t>(seed) * 1000003 + static_cast<uint64_t>(kill));
    Job(make_plan(random), random).check();
    if (testing::Test::HasFailure()) FAIL() << "kill " << kill << " of seed " << seed;
  }
}

/// A server says its port if it listens there; all wait for a byte before they end.
constexpr const char* kHold = R"(
if [ $TRAINING_ROLE = PSERVER ]; then
  socket=$(readlink /proc/$$/fd/$ARGOSY_LISTEN_FD | tr -dc 0-9)
  here=$(printf '0100007F:%04X 00000000:0000 0A' $PADDLE_PORT)
  grep -q ": $here .* $socket " /proc/net/tcp || { echo "socket $socket is not $here"; exit 1; }
  echo $PADDLE_PORT > port.$JOB.new && mv port.$JOB.new port.$JOB
else
  touch worker.$JOB
fi
read _ < go
)";

TEST(Chaos, ManyJobsAtOnceDoNotCollide) {
  const int jobs = from_env("ARGOSY_CHAOS_JOBS", 40);
  const argosy::TestFolder folder;
  const std::string marker = fs::path(folder.path()).filename().string();
  folder.write("script", kHold);
  ASSERT_EQ(::mkfifo((folder.path() + "/go").c_str(), 0600), 0);
  const int go = ::open((folder.path() + "/go").c_str(), O_RDWR | O_CLOEXEC);
  std::vector<std::unique_ptr<Launch>> launches;
  for (int job = 0; job < jobs; ++job)
    launches.push_back(std::make_unique<Launch>(
        folder.path(), marker,
        fmt::format("--server_num=1 --worker_num=1 --log_dir=log{0} --env JOB={0} sh script",
                    job)));
  const auto name = [&](const char* kind, int job) {
    return fmt::format("{}/{}.{}", folder.path(), kind, job);
  };
  std::set<std::string> ports;
  for (int job = 0; job < jobs; ++job) {
    await([&] { return fs::exists(name("port", job)) && fs::exists(name("worker", job)); },
          fmt::format("job {}", job));
    ports.insert(content(name("port", job)));
  }
  EXPECT_EQ(ports.size(), static_cast<size_t>(jobs));
  const std::string bytes(static_cast<size_t>(jobs) * 2, '\n');
  ASSERT_EQ(::write(go, bytes.data(), bytes.size()), std::ssize(bytes));
  for (const auto& launch : launches) {
    const Outcome outcome = launch->wait();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  }
  ::close(go);
  EXPECT_EQ(left_running(marker), "");
}

}  // namespace

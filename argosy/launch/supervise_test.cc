#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/launch/supervise.h"
#include "argosy/world/test_processes.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

constexpr auto kLong = 60s;  // a grace that no test should have to wait for

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Runs shell commands as one server and some workers, in a temporary folder.
class Supervise : public testing::Test {
 public:
  ~Supervise() override {
    std::fclose(out_);
    std::fclose(errors_);
  }

 protected:
  int run(const std::string& server, const std::vector<std::string>& workers,
          std::chrono::milliseconds grace = kLong, int max_restart = 0) {
    std::vector<Process> processes = {make(ProcessKind::server, 0, server)};
    for (size_t index = 0; index < workers.size(); ++index)
      processes.push_back(make(ProcessKind::worker, static_cast<int>(index), workers[index]));
    std::vector<Descriptor> sockets;
    sockets.emplace_back(::dup(STDIN_FILENO));
    return supervise(processes, std::move(sockets),
                     {.grace = grace,
                      .patience = patience_,
                      .max_restart = max_restart,
                      .out = out_,
                      .errors = errors_});
  }
  Process make(ProcessKind kind, int index, const std::string& command) const {
    const char* log = kind == ProcessKind::server ? "/serverlog." : "/workerlog.";
    return {.kind = kind,
            .index = index,
            .log_file = folder_.path() + log + std::to_string(index),
            .env = {{"HERE", folder_.path()}, {"REPLACED", "new"}},
            .unset = {"TAKEN_AWAY"},
            .argv = {"sh", "-c", command},
            .member = kind == ProcessKind::server ? 0 : -1};
  }
  static std::string written(std::FILE* file) {
    std::rewind(file);
    std::string text(10000, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file));
    return text;
  }
  std::string log(const std::string& name) const { return content(folder_.path() + "/" + name); }
  /// Output so far; may be called from another thread.
  std::string said() const {
    std::string text(10000, '\0');
    text.resize(static_cast<size_t>(
        std::max<ssize_t>(0, ::pread(::fileno(errors_), text.data(), text.size(), 0))));
    return text;
  }

  const TestFolder folder_;
  Env::Duration patience_ = kLong;
  std::FILE* out_ = std::tmpfile();
  std::FILE* errors_ = std::tmpfile();
};

/// Waits for a file that another process makes; the tests' own time limit ends it otherwise.
const std::string kAwait = "await() { until [ -e $HERE/$1 ]; do sleep 0.01; done; }; ";

TEST_F(Supervise, AllGoodEndsWithZero) {
  EXPECT_EQ(run("echo s", {"echo a; echo b >&2", "echo c"}), 0);
  EXPECT_EQ(log("serverlog.0"), "s\n");
  EXPECT_EQ(log("workerlog.0"), "a\nb\n");
  EXPECT_EQ(log("workerlog.1"), "c\n");
  EXPECT_EQ(written(out_), "a\nb\n");
  EXPECT_EQ(written(errors_), "");
}

TEST_F(Supervise, NamesWhoIsStoppedAndWhoIsLeft) {
  patience_ = 100ms;
  std::string process;
  const std::jthread help([&] {
    const std::regex left("still runs: worker 1 \\(process ([0-9]+), which is stopped\\)"),
        stopped("worker 1 has been stopped for [0-9]+ s, by SIGSTOP or a debugger; kill -CONT");
    std::smatch found;
    std::string text;
    await(
        [&] {
          text = said();
          return std::regex_search(text, found, left) && std::regex_search(text, stopped);
        },
        "what is said");
    process = found[1];
    ::kill(std::stoi(process), SIGCONT);
  });
  EXPECT_EQ(run("exec sleep 1000", {"true", "kill -STOP $$; echo on"}, 5s), 0);
  EXPECT_EQ(log("workerlog.1"), "on\n");
}

TEST_F(Supervise, NamesWhoDoesNotEnd) {
  patience_ = 100ms;
  EXPECT_EQ(run("trap '' TERM; while true; do sleep 0.1; done", {"true"}, 1s), 0);
  const std::string text = written(errors_);
  EXPECT_TRUE(std::regex_search(
      text, std::regex("waits for server 0 \\(process [0-9]+\\) to end, asked [0-9]+ s ago\n")))
      << text;
  EXPECT_TRUE(text.ends_with("did not end in time, killed: server 0\n")) << text;
}

TEST_F(Supervise, EndsAServerThatIsStopped) {
  EXPECT_EQ(run("touch $HERE/up; kill -STOP $$; exec sleep 1000", {kAwait + "await up"}), 0);
  EXPECT_EQ(written(errors_), "");
}

TEST_F(Supervise, EnvironmentIsReplacedAndTakenAway) {
  ::setenv("REPLACED", "old", 1);
  ::setenv("TAKEN_AWAY", "old", 1);
  ::setenv("KEPT", "old", 1);
  EXPECT_EQ(run("true", {"echo $REPLACED $TAKEN_AWAY $KEPT"}), 0);
  EXPECT_EQ(log("workerlog.0"), "new old\n");
}

TEST_F(Supervise, FirstFailureEndsTheOthersAndGivesItsCode) {
  EXPECT_EQ(run(kAwait + "touch $HERE/up; exec sleep 1000",
                {kAwait + "await up; seq 22; exit 7", "exec sleep 1000"}),
            7);
  std::string lines;
  for (int line = 3; line <= 22; ++line) lines += "  " + std::to_string(line) + "\n";
  EXPECT_EQ(written(errors_), "fleetrun: worker 0 failed: exit status 7; " + folder_.path() +
                                  "/workerlog.0 ends with:\n" + lines);
}

TEST_F(Supervise, SignalThatKilledAProcessIsPartOfTheCode) {
  EXPECT_EQ(run("kill -9 $$", {"exec sleep 1000"}), 128 + SIGKILL);
  EXPECT_EQ(written(errors_), "fleetrun: server 0 failed: killed by signal 9 (Killed); " +
                                  folder_.path() + "/serverlog.0 is empty\n");
}

TEST_F(Supervise, WhoIsKilledComesBeforeWhoFailsForWantOfIt) {
  EXPECT_EQ(run("exec sleep 1000", {kAwait + "await up; kill -9 $(cat $HERE/up); exit 1",
                                    "echo $$ > $HERE/me; mv $HERE/me $HERE/up; exec sleep 1000"}),
            128 + SIGKILL);
  EXPECT_EQ(written(errors_), "fleetrun: worker 1 failed: killed by signal 9 (Killed); " +
                                  folder_.path() + "/workerlog.1 is empty\n");
}

TEST_F(Supervise, ServerIsAskedToEndAfterTheWorkers) {
  EXPECT_EQ(run("trap 'echo asked > $HERE/asked; exit 5' TERM; touch $HERE/up; "
                "while :; do sleep 0.01; done",
                {kAwait + "await up"}, 500ms),
            0);
  EXPECT_EQ(log("asked"), "asked\n");
}

TEST_F(Supervise, ServerThatDoesNotEndIsKilled) {
  EXPECT_EQ(run("trap '' TERM; touch $HERE/up; while :; do sleep 0.01; done", {kAwait + "await up"},
                50ms),
            0);
  EXPECT_EQ(written(errors_), "fleetrun: did not end in time, killed: server 0\n");
}

TEST_F(Supervise, ServerMayBeALittleQuickerThanTheWorkers) {
  EXPECT_EQ(run("touch $HERE/gone", {kAwait + "await gone"}), 0);
}

TEST_F(Supervise, WorkersThatRunOnWithoutTheirServerAreStopped) {
  EXPECT_EQ(run("echo bye", {"exec sleep 1000"}, 50ms), 1);
  EXPECT_EQ(written(errors_), "fleetrun: server 0 ended before the workers: exit status 0; " +
                                  folder_.path() + "/serverlog.0 ends with:\n  bye\n");
}

TEST_F(Supervise, ProcessesLeftInAGroupAreKilledAndWaitedFor) {
  EXPECT_EQ(run("true", {"sleep 1000 & echo $!"}), 0);
  const pid_t left = std::stoi(log("workerlog.0"));
  EXPECT_EQ(::kill(left, 0), -1);
}

TEST_F(Supervise, ProgressOfAllWorkersIsOneLine) {
  const std::string report = "epoch=1 epochs=1 steps=9 samples=100 seconds=1 loss=0.5 step=";
  EXPECT_EQ(run("true", {"echo text; echo worker=0 " + report + "4 >&4",
                         "echo worker=1 " + report + "6 >&4"}),
            0);
  const std::string shown = written(out_);
  EXPECT_NE(shown.find("text\n"), std::string::npos) << shown;
  EXPECT_TRUE(shown.ends_with("epoch 1/1  step 4..6/9  loss 0.5000  200 samples/s\n")) << shown;
  EXPECT_EQ(log("workerlog.1"), "");
}

TEST_F(Supervise, FailedProcessIsStartedAgainAndItsLogGoesOn) {
  const std::string script = "echo start $ARGOSY_RESTART; [ \"$ARGOSY_RESTART\" = 2 ] || exit 5";
  EXPECT_EQ(run("true", {script, "true"}, kLong, 2), 0);
  EXPECT_EQ(log("workerlog.0"), "start\nstart 1\nstart 2\n");
  const std::string errors = written(errors_);
  EXPECT_NE(errors.find("worker 0 failed: exit status 5"), std::string::npos) << errors;
  EXPECT_NE(errors.find("fleetrun: worker 0 is started again (2 of 2)\n"), std::string::npos)
      << errors;
}

TEST_F(Supervise, ProcessThatFailsTooOftenEndsTheJob) {
  EXPECT_EQ(run("true", {"exit 5", "exec sleep 1000"}, kLong, 1), 5);
}

TEST_F(Supervise, ServerIsStartedAgainWithItsSocket) {
  EXPECT_EQ(run("[ -e /proc/self/fd/3 ] || exit 9; [ \"$ARGOSY_RESTART\" ] || kill -9 $$; "
                "touch $HERE/back",
                {kAwait + "await back"}, kLong, 1),
            0)
      << written(errors_);
}

TEST_F(Supervise, LogsOfAllAreShownWithTheirNames) {
  std::vector<Process> processes = {make(ProcessKind::server, 0, "echo a; echo b"),
                                    make(ProcessKind::worker, 0, "echo c")};
  processes[0].member = -1;
  EXPECT_EQ(
      supervise(processes, {}, {.grace = kLong, .log_all = true, .out = out_, .errors = errors_}),
      0);
  const std::string shown = written(out_);
  EXPECT_NE(shown.find("[server 0] a\n[server 0] b\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("[worker 0] c\n"), std::string::npos) << shown;
}

TEST_F(Supervise, SpeaksJsonWhenAsked) {
  const std::vector<Process> processes = {make(ProcessKind::worker, 0, "echo \\\"x; exit 3")};
  EXPECT_EQ(
      supervise(processes, {}, {.grace = kLong, .json = true, .out = out_, .errors = errors_}), 3);
  const std::string said = written(errors_);
  EXPECT_NE(said.find(R"({"event": "ended", "kind": "worker", "index": 0, "code": 3})"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find(R"(ends with:\n  \"x"})"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("{\"event\": \"over\", \"code\": 3}\n")) << said;
}

TEST_F(Supervise, CommandThatIsNotThereSaysSoInItsLog) {
  std::vector<Process> processes = {make(ProcessKind::worker, 0, "")};
  processes[0].argv = {"./no-such-command"};
  EXPECT_EQ(supervise(processes, {}, {.grace = kLong, .out = out_, .errors = errors_}), 127);
  EXPECT_EQ(log("workerlog.0"), "cannot run ./no-such-command: No such file or directory\n");
}

TEST_F(Supervise, LogThatCannotBeWrittenLeavesNothingRunning) {
  std::vector<Process> processes = {make(ProcessKind::worker, 0, "exec sleep 1000"),
                                    make(ProcessKind::worker, 1, "exec sleep 1000")};
  processes[1].log_file = folder_.path() + "/absent/log";
  EXPECT_EQ(message_of<IoError>([&] { supervise(processes, {}, {.grace = kLong}); }),
            "cannot open " + folder_.path() + "/absent/log: No such file or directory");
}

}  // namespace
}  // namespace argosy::launch

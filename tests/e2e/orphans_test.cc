// No process outlives its job, however that ends: programs that run pipe commands, killed for real.
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "argosy/world/test_processes.h"
#include "tests/e2e/test_jobs.h"

namespace argosy::e2e {
namespace {

/// A pipe command that gives nothing, with grandchildren: in a pipeline, and one that has left its
/// group. Files say who they are.
const std::string kSilent =
    "setsid sh -c \"echo \\$\\$ > daemon.new; mv daemon.new daemon.pid; exec sleep 1000\" & "
    "echo $$ > command.new; mv command.new command.pid; cat | sleep 1000";
const std::string kSettings = "'runner.pipe_command=" + kSilent + "' runner.epochs=1";
const std::string kTraining = "'" ARGOSY_BIN_DIR "/argosy' train -m config.yaml -o ";

class Orphans : public PsJob {
 protected:
  ~Orphans() override {
    for (const Found& left : processes_with({variable()})) ::kill(left.pid, SIGKILL);
  }
  std::string variable() const { return "ARGOSY_E2E=" + folder_.filename().string(); }
  Variables variables() const { return {{"ARGOSY_E2E", folder_.filename().string()}}; }

  void generate() const {
    const Outcome outcome = run(train("runner.epochs=1"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  }
  Process start(const std::string& command) const {
    return Process(folder_, "job", command, variables());
  }
  /// The pipe command and its daemon run.
  void await_commands() const {
    await([&] { return fs::exists(folder_ / "daemon.pid") && fs::exists(folder_ / "command.pid"); },
          "the pipe command");
  }
  void forget_commands() const {
    fs::remove(folder_ / "daemon.pid");
    fs::remove(folder_ / "command.pid");
  }
  /// All have the variable, the guards as well.
  void expect_nobody_left() const {
    std::string names;
    const auto nobody = [&] {
      names.clear();
      for (const Found& left : processes_with({variable()})) names += left.command + " ";
      return names.empty();
    };
    try {
      await(nobody, "the end of all", 10s);
    } catch (const std::runtime_error&) {
      ADD_FAILURE() << "there are still: " << names;
    }
  }
};

TEST_F(Orphans, AreNotLeftByATrainingThatIsKilled) {
  generate();
  for (const int signal : {SIGKILL, SIGTERM, SIGINT, SIGABRT}) {
    SCOPED_TRACE(signal);
    Process job = start(train(kSettings));
    await_commands();
    ::kill(job.pid(), signal);
    expect_nobody_left();
    forget_commands();
  }
}

TEST_F(Orphans, AreNotLeftByADoctorThatIsKilled) {
  generate();
  Process job = start("argosy doctor -- " + kTraining + kSettings);
  await_commands();
  ::kill(job.pid(), SIGKILL);
  expect_nobody_left();
}

/// The look at the data before a job has little time: it may be over before the command is there.
TEST_F(Orphans, AreNotLeftByTheLookBeforeAJob) {
  generate();
  const std::string command = "if [ -n \"$TRAINING_ROLE\" ]; then cat; else " + kSilent + "; fi";
  constexpr int kTries = 20;
  for (int i = 0; i < kTries && !fs::exists(folder_ / "daemon.pid"); ++i) {
    Process job = start("fleetrun --server_num=1 --worker_num=1 " + kTraining +
                        "'runner.pipe_command=" + command + "' runner.epochs=1");
    EXPECT_EQ(job.wait(), 0) << job.output() << job.errors();
    expect_nobody_left();
  }
  EXPECT_TRUE(fs::exists(folder_ / "daemon.pid"));
}

TEST_F(Orphans, AreNotLeftByAWorkerThatIsKilledAndStartedAgain) {
  generate();
  const std::string command =
      "if [ -z \"$TRAINING_ROLE\" ] || [ \"$ARGOSY_RESTART\" = 1 ]; then cat; else " + kSilent +
      "; fi";
  Process job = start("fleetrun --server_num=1 --worker_num=1 --max_restart=1 " + kTraining +
                      "'runner.pipe_command=" + command + "' runner.epochs=1");
  await_commands();
  const pid_t daemon = std::stoi(content(folder_ / "daemon.pid")),
              shell = std::stoi(content(folder_ / "command.pid")), worker = parent_of(shell);
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  await([&] { return is_gone(daemon) && is_gone(shell); }, "the end of the pipe command", 10s);
  EXPECT_EQ(job.wait(), 0) << job.output() << job.errors();
  expect_nobody_left();
}

}  // namespace
}  // namespace argosy::e2e

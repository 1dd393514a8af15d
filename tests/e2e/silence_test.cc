// A job that stands still says why within ten seconds, and ends when it is told to.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <string>

#include "argosy/world/test_processes.h"
#include "tests/e2e/test_jobs.h"

namespace argosy::e2e {
namespace {

class Silence : public PsJob {
 protected:
  void generate() const {
    const Outcome outcome = run(train("runner.epochs=1"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  }
  /// Whether a text comes up in time.
  template <class F>
  static bool comes(const F& text, const std::string& pattern,
                    std::chrono::milliseconds within = kPatience) {
    const std::regex regex(pattern);
    const auto deadline = Clock::now() + within;
    while (!std::regex_search(text(), regex)) {
      if (Clock::now() > deadline) return false;
      std::this_thread::sleep_for(20ms);
    }
    return true;
  }
  static void expect_end_at_once(Process& process, int signal) {
    const auto start = Clock::now();
    ::kill(process.pid(), signal);
    process.wait();
    EXPECT_LT(Clock::now() - start, 5s);
  }
};

TEST_F(Silence, OfAFifoThatNobodyWritesToIsNamed) {
  generate();
  for (const auto& file : fs::directory_iterator(folder_ / "train")) fs::remove(file);
  ASSERT_EQ(::mkfifo((folder_ / "train/part-0").c_str(), 0600), 0);
  Process job(folder_, "job", train("runner.epochs=1"));
  EXPECT_TRUE(
      comes([&] { return job.output(); }, "waits for data: train/part-0 has given nothing for 5 s"))
      << job.output() << job.errors();
  expect_end_at_once(job, SIGTERM);
}

TEST_F(Silence, OfAPipeCommandIsNamedInTheLogAndInTheStatus) {
  generate();
  Process job(folder_, "job",
              "fleetrun --server_num=1 --worker_num=2 '" ARGOSY_BIN_DIR
              "/argosy' train -m config.yaml -o "
              "'runner.pipe_command=if [ \"$PADDLE_TRAINER_ID\" = 1 ]; then sleep 1000; fi; cat'");
  const std::string silent = "train/part-[0-9]+ through 'if .* cat'";
  EXPECT_TRUE(
      comes([&] { return log("workerlog.1"); },
            "waits for data: " + silent + " has given nothing for 5 s; it is process [0-9]+"))
      << log("workerlog.1") << job.errors();
  EXPECT_TRUE(comes([&] { return run("argosy status").output; },
                    "worker 1 reads data for [0-9.]+ s \\(" + silent +
                        " gives nothing; it is process [0-9]+\\)"));
  EXPECT_TRUE(comes([&] { return log("workerlog.1"); }, " has given nothing for 10 s"))
      << "it is said again";
  expect_end_at_once(job, SIGINT);
}

TEST_F(Silence, OfADaemonThatHoldsAnOutputOpenEndsTheFile) {
  generate();
  for (const char* other : {"part-1", "part-2", "part-3"}) fs::remove(folder_ / "train" / other);
  Process job(folder_, "job",
              train("'runner.pipe_command=setsid sleep 1000 & cat' runner.epochs=1 "
                    "runner.test_data_dir=none"));
  EXPECT_EQ(job.wait(), 0) << job.output() << job.errors();
  EXPECT_TRUE(std::regex_search(
      job.output(),
      std::regex(
          "has given nothing for 5 s: the command has ended \\(exit status 0\\), but process "
          "[0-9]+ \\(sleep 1000\\) holds its output open")))
      << job.output();
  EXPECT_NE(job.output().find("is taken to be at its end"), std::string::npos) << job.output();
  EXPECT_NE(job.output().find("epoch: 0 done"), std::string::npos) << job.output();
}

TEST_F(Silence, OfAWorkerThatIsStoppedIsNamedByItsLauncher) {
  write("script", "case $TRAINING_ROLE$PADDLE_TRAINER_ID in TRAINER1) kill -STOP $$;; esac");
  const auto start = Clock::now();
  Process job(folder_, "job", "fleetrun --server_num=1 --worker_num=2 sh script");
  const std::string stopped =
      "fleetrun: worker 1 has been stopped for 5 s, by SIGSTOP or a debugger; kill -CONT ([0-9]+) ";
  EXPECT_TRUE(comes([&] { return job.errors(); }, stopped)) << job.errors();
  EXPECT_LT(Clock::now() - start, 10s);
  EXPECT_TRUE(
      comes([&] { return job.errors(); },
            "fleetrun: still runs: worker 1 \\(process [0-9]+, which is stopped\\); the last "
            "of those that have ended did [0-9]+ s ago"))
      << job.errors();
  EXPECT_TRUE(comes([&] { return run("argosy status").output; }, "worker 1 .* is stopped"));
  const auto found = all_matches(job.errors(), stopped);
  ASSERT_FALSE(found.empty());
  ::kill(std::stoi(found[0]), SIGCONT);
  EXPECT_EQ(job.wait(), 0) << job.errors();
}

}  // namespace
}  // namespace argosy::e2e

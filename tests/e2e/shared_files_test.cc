// The files of an epoch are a queue: who is free takes the next one.
#include "tests/e2e/test_jobs.h"

namespace argosy::e2e {
namespace {

class SharedFilesJob : public PsJob, public testing::WithParamInterface<const char*> {
 protected:
  static std::string settings(const std::string& pipe) {
    return "'runner.pipe_command=" + pipe + "' runner.epochs=2 runner.sync_mode=" + GetParam() +
           " 'runner.generate=criteo(vocab=50, seed=3, rows=" + std::to_string(kRows) +
           ", files=16)'";
  }
};

/// Worker 1 stands in its first file of each epoch until the other has read more than its share.
TEST_P(SharedFilesJob, QuickWorkersTakeFilesOfSlowOnes) {
  const Outcome job =
      launch(2, 2,
             settings("if [ $PADDLE_TRAINER_ID = 0 ]; then cat; echo >> quick; else "
                      "until [ $(wc -l < quick) -gt 8 ]; do sleep 0.02; done; cat; fi"));
  ASSERT_EQ(job.exit_code, 0) << job.errors;
  EXPECT_EQ(instances(2), std::vector<int>(2, kRows));
  const auto quick = all_matches(log("workerlog.0"), "audit: [0-9]+ instances of ([0-9]+) files");
  ASSERT_EQ(quick.size(), 2U);
  EXPECT_GT(std::stoi(quick[0]), 8);
}

INSTANTIATE_TEST_SUITE_P(Modes, SharedFilesJob, testing::Values("async", "half_async", "geo"),
                         [](const auto& info) { return std::string(info.param); });

/// However fast they are: runs of sync steps should be repeatable.
TEST_F(PsJob, WorkersOfSyncStepsKeepToTheirShares) {
  const Outcome job = launch(1, 2,
                             "'runner.pipe_command=if [ $PADDLE_TRAINER_ID = 1 ]; then sleep 0.3; "
                             "fi; cat' runner.epochs=1 "
                             "runner.sync_mode=sync");
  ASSERT_EQ(job.exit_code, 0) << job.errors;
  for (const char* worker : {"workerlog.0", "workerlog.1"})
    EXPECT_EQ(all_matches(log(worker), "audit: ([0-9]+ instances of [0-9]+ files)"),
              std::vector<std::string>{std::to_string(kRows / 2) + " instances of 2 files"});
}

/// With several reading lanes, killed and started again within an epoch: it reads the same files in
/// the same order, so that what servers have of it is left out to the batch.
TEST_F(PsJob, AWorkerThatIsStartedAgainTakesTheFilesItHadTaken) {
  const std::string kill =
      "'runner.pipe_command=if [ $PADDLE_TRAINER_ID = 1 ] && [ ! -e killed ] && [ -e read ]; then "
      "head -n 500; sleep 0.5; touch killed; kill -9 $PPID; fi; touch read; cat' ";
  const Outcome job = run("fleetrun --server_num=2 --worker_num=2 --max_restart=1 '" ARGOSY_BIN_DIR
                          "/argosy' train " +
                          std::string("-m config.yaml -o ") + kill +
                          "runner.epochs=2 runner.sync_mode=async runner.reader_threads=2 "
                          "'runner.generate=criteo(vocab=50, seed=3, rows=" +
                          std::to_string(kRows) + ", files=16)'");
  ASSERT_EQ(job.exit_code, 0) << job.errors;
  ASSERT_TRUE(fs::exists(folder_ / "killed"));
  EXPECT_EQ(instances(2).back(), kRows);
  EXPECT_NE(log("workerlog.1").find("goes on with epoch"), std::string::npos);
  EXPECT_EQ(log("workerlog.0").find("left behind"), std::string::npos) << log("workerlog.0");
}

}  // namespace
}  // namespace argosy::e2e

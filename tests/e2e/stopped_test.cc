// Workers that are stopped (SIGSTOP, a debugger, a machine that swaps) are slow, not dead: they go
// on with their share of the data, or the job says what was not trained.
#include "argosy/world/test_processes.h"
#include "tests/e2e/test_jobs.h"

namespace argosy::e2e {
namespace {

/// Worker 1 stops itself after 20 batches of its first file; the others' data stop in the second
/// epoch until there is a file `go`.
const std::string kStops =
    "'runner.pipe_command=case $PADDLE_TRAINER_ID in "
    "1) if [ ! -e stopped ]; then head -n 1000; echo $PPID > stopping; mv stopping stopped; kill "
    "-STOP $PPID; fi;; "
    "*) if [ -e m/0/persistables.argosy ]; then until [ -e go ]; do sleep 0.02; done; fi;; "
    "esac; cat' ";

class Stopped : public PsJob, public testing::WithParamInterface<const char*> {
 protected:
  void start(const std::string& settings, const std::string& launch = "--max_restart=1") {
    job_.emplace(
        folder_, "run",
        "fleetrun --server_num=1 --worker_num=2 " + launch + " '" ARGOSY_BIN_DIR "'/" +
            train(kStops + "runner.model_save_path=m " + settings),
        Variables{{"ARGOSY_QUIET", "3"}, {"ARGOSY_PATIENCE", "1"}, {"ARGOSY_GIVE_UP", "8"}});
  }
  void expect_taken_for_dead() {
    await(
        [&] {
          return log("serverlog.0")
                     .find("worker 1 is taken for dead: nothing was heard of it for 3 s") !=
                 std::string::npos;
        },
        "the death of worker 1");
  }
  void let_go_on() const { ::kill(std::stoi(content(folder_ / "stopped")), SIGCONT); }

  std::optional<Process> job_;
};

TEST_P(Stopped, AWorkerThatGoesOnTrainsItsShare) {
  start(std::string("runner.sync_mode=") + GetParam());
  expect_taken_for_dead();
  await([&] { return log("workerlog.0").find("epoch: 0 done") != std::string::npos; },
        "the others, who do not wait for it");
  let_go_on();
  await(
      [&] {
        return log("serverlog.0").find("worker 1 was taken for dead and is back") !=
               std::string::npos;
      },
      "its return");
  write("go", "");
  EXPECT_EQ(job_->wait(), 0) << job_->errors() << log("workerlog.0") << log("workerlog.1");
  for (const char* epoch : {"epoch: 0 done", "epoch: 1 done", "epoch: 2 done"})
    EXPECT_NE(log("workerlog.1").find(epoch), std::string::npos) << epoch;
  // The first epoch was whole without it, and what it had begun it ended as well.
  EXPECT_NE(log("workerlog.0").find("files were left behind by workers that are lost"),
            std::string::npos);
  const std::vector<int> trained = instances(2);
  ASSERT_EQ(trained.size(), 3U);
  EXPECT_GT(trained[0], kRows);
  EXPECT_LE(trained[0], 3 * kRows / 2);
  EXPECT_EQ(trained[1], kRows);
  EXPECT_EQ(trained[2], kRows);
}

INSTANTIATE_TEST_SUITE_P(Modes, Stopped, testing::Values("sync", "async"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(Stopped, AWorkerThatNeverGoesOnIsNamedAndTheOthersTrainItsFiles) {
  write("go", "");
  start("runner.sync_mode=async", "");
  EXPECT_EQ(job_->wait(), 1) << job_->errors();
  const std::string said = job_->errors();
  EXPECT_NE(said.find("fleetrun: worker 1 has been stopped for "), std::string::npos) << said;
  EXPECT_NE(said.find("worker 1 has not come back and is given up"), std::string::npos) << said;
  EXPECT_EQ(instances(1), std::vector<int>(3, kRows));
}

/// Files in a worker's memory cannot be trained by others.
TEST_F(Stopped, AWorkerThatNeverGoesOnIsNamedWithTheFilesItHasInMemory) {
  write("go", "");
  start("runner.sync_mode=async runner.reader_type=InmemoryDataset");
  EXPECT_EQ(job_->wait(), 1) << job_->errors();
  const std::string said = job_->errors();
  for (const char* epoch : {"epoch 0", "epoch 1", "epoch 2"})
    EXPECT_NE(said.find(epoch + std::string(" ended without worker 1, which was taken for dead: "
                                            "not trained to the end: train/part-")),
              std::string::npos)
        << said;
}

}  // namespace
}  // namespace argosy::e2e

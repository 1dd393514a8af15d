// Processes of a job are killed with SIGKILL and restarted, as by a launcher: the job ends well, or
// ends at once and says why.
#include "tests/e2e/test_jobs.h"

namespace argosy::e2e {
namespace {

constexpr int kAway = 60;  // seconds; longer than any restart here takes
const std::string kInSecondEpoch = "[ -e m/0/persistables.argosy ]";
const std::string kFirstStart = "[ -z \"$ARGOSY_RESTART\" ]";

std::string is_worker(int index) {
  return "[ \"$PADDLE_TRAINER_ID\" = " + std::to_string(index) + " ]";
}

/// If the shell's conditions hold, the data stop after 20 batches of a file until there is a file
/// `go`.
std::string stops(const std::string& conditions, const std::string& go = "go") {
  return "'runner.pipe_command=if " + conditions + "; then head -n 1000; until [ -e " + go +
         " ]; do sleep 0.02; done; fi; cat' ";
}

class Restart : public PsJob {
 protected:
  static std::string settings(const std::string& mode) {
    return train("runner.model_save_path=m runner.geo_step=5 runner.sync_mode=" + mode + " ");
  }
  /// Only the servers start.
  void declare(int workers, size_t servers, const std::string& command, int away = kAway) {
    job_.emplace(folder_, workers, static_cast<int>(servers), away);
    command_ = command;
    for (size_t i = 0; i < servers; ++i) servers_.push_back(job_->server(command, i));
  }
  void start(int workers, size_t servers, const std::string& command, int away = kAway) {
    declare(workers, servers, command, away);
    for (int i = 0; i < workers; ++i) workers_.push_back(job_->worker(i, command));
  }
  void restart_worker(int index, int restarts) {
    workers_[static_cast<size_t>(index)] = job_->worker(index, command_, restarts);
  }
  void restart_server(size_t index, int restarts) {
    servers_[index] = job_->server(command_, index, restarts);
  }
  Process& worker(size_t index) { return *workers_[index]; }
  Process& server(size_t index) { return *servers_[index]; }

  void expect_right_end() {
    for (const auto& process : workers_)
      EXPECT_EQ(process->wait(), 0) << process->output() << process->errors();
    for (const auto& process : servers_)
      EXPECT_EQ(process->wait(), 0) << process->output() << process->errors();
  }
  /// As much as one process learns that nothing happens to.
  void expect_learned() {
    const double alone = local_auc();
    EXPECT_GT(alone, 0.7);
    EXPECT_NEAR(inferred("runner.model_save_path=m"), alone, kNear);
  }

  std::optional<PlainJob> job_;
  std::string command_;
  std::vector<std::unique_ptr<Process>> servers_, workers_;
};

void expect_says(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "expected '" << words << "' in\n" << text;
}

class RestartModes : public Restart, public testing::WithParamInterface<const char*> {};

TEST_P(RestartModes, AWorkerThatIsKilledGoesOnWithTheEpochOfTheOthers) {
  start(
      2, 2,
      settings(GetParam()) + stops(is_worker(1) + " && " + kFirstStart + " && " + kInSecondEpoch));
  ASSERT_TRUE(worker(1).says("epoch: 1, batch_id: 10,")) << worker(1).errors();
  worker(1).kill();
  write("go", "");
  restart_worker(1, 1);
  expect_right_end();
  const auto repeated = all_matches(
      worker(1).output(), "goes on with epoch 1: the servers have ([0-9]+) batches of it");
  ASSERT_EQ(repeated.size(), 1U) << worker(1).output();
  EXPECT_GE(std::stoi(repeated[0]), 5);
  EXPECT_LE(std::stoi(repeated[0]), 20);
  EXPECT_EQ(worker(1).output().find("epoch: 0, batch_id"), std::string::npos) << worker(1).output();
  expect_says(worker(1).output(), "epoch: 1 done");
  expect_says(worker(0).output(), "Already save model in m/2");
  for (size_t i = 0; i < 2; ++i) {
    expect_says(server(i).output(), "lost worker 1: ");
    expect_says(server(i).output(), "worker 0 has left");
    expect_says(server(i).output(), "worker 1 has left");
  }
  expect_learned();
}

TEST_P(RestartModes, AServerThatIsKilledGoesOnFromTheLastSave) {
  start(2, 2, settings(GetParam()) + stops(kInSecondEpoch + " && [ ! -e go ]"));
  ASSERT_TRUE(worker(0).says("epoch: 1, batch_id: 10,")) << worker(0).errors();
  ASSERT_TRUE(worker(1).says("epoch: 1, batch_id: 10,")) << worker(1).errors();
  server(1).kill();
  restart_server(1, 1);
  ASSERT_TRUE(server(1).says("Server listening on " + job_->address(1))) << server(1).errors();
  write("go", "");
  expect_right_end();
  const std::string text = server(1).output();
  EXPECT_EQ(all_matches(text,
                        "(server 1 came back with the model of m/0: epoch 0, saved "
                        "20[0-9: -]+, step [0-9]+; what it learned since then is lost)")
                .size(),
            1U)
      << text;
  for (const char* number : {"0", "1"}) {
    const auto lost = all_matches(
        text, std::string("worker ") + number +
                  " had [0-9]+ exchanges with a server before this one and goes on: the save has "
                  "[0-9]+ of them, ([0-9]+) are lost");
    ASSERT_EQ(lost.size(), 1U) << text;
    EXPECT_GE(std::stoi(lost[0]), 1);
  }
  expect_says(worker(0).errors(), "server 1 at " + job_->address(1) + " was started anew");
  expect_learned();
}

INSTANTIATE_TEST_SUITE_P(Modes, RestartModes, testing::Values("sync", "async", "half_async", "geo"),
                         [](const auto& info) { return std::string(info.param); });

/// In the first epoch and, started again, in the second.
TEST_F(Restart, TheFirstWorkerIsKilledTwiceAndStillSavesAndTests) {
  const std::string second = "[ \"$ARGOSY_RESTART\" = 1 ] && " + kInSecondEpoch;
  start(
      2, 2,
      settings("sync") + stops(is_worker(0) + " && { " + kFirstStart + " || { " + second + "; }; }",
                               "go$ARGOSY_RESTART"));
  ASSERT_TRUE(worker(0).says("epoch: 0, batch_id: 10,")) << worker(0).errors();
  worker(0).kill();
  write("go", "");
  restart_worker(0, 1);
  ASSERT_TRUE(worker(0).says("epoch: 1, batch_id: 10,")) << worker(0).errors();
  expect_says(worker(0).output(), "started again and goes on with epoch 0: the servers have 1");
  expect_says(worker(0).output(), "Already save model in m/0");
  worker(0).kill();
  write("go1", "");
  restart_worker(0, 2);
  expect_right_end();
  expect_says(worker(0).output(), "started again and goes on with epoch 1: the servers have ");
  expect_says(worker(0).output(), "Already save model in m/2");
  expect_says(worker(0).output(), "test AUC ");
  expect_learned();
}

/// The line comes just before the save: it is killed during it or, if that was quick, after it.
TEST_F(Restart, TheFirstWorkerIsKilledWhileItSaves) {
  start(2, 1, settings("sync"));
  for (int epoch = 0; epoch < 2; ++epoch) {
    ASSERT_TRUE(worker(0).says("epoch: " + std::to_string(epoch) + " done"))
        << worker(0).output() << worker(0).errors();
    worker(0).kill();
    restart_worker(0, epoch + 1);
  }
  expect_right_end();
  for (const char* save : {"m/0", "m/1", "m/2"})
    EXPECT_TRUE(fs::exists(folder_ / save / "persistables.argosy")) << save;
  expect_says(worker(0).output(), "test AUC ");
  expect_learned();
}

TEST_F(Restart, WorkersAreKilledBeforeTheJobHasBegun) {
  declare(2, 1, settings("sync"));
  workers_.push_back(job_->worker(0, command_));
  ASSERT_TRUE(worker(0).says("train was missing: generated")) << worker(0).errors();
  worker(0).kill();
  restart_worker(0, 1);
  workers_.push_back(job_->worker(1, command_));
  ASSERT_TRUE(worker(1).says("worker 1 of 2")) << worker(1).errors();
  worker(1).kill();
  restart_worker(1, 1);
  expect_right_end();
  expect_learned();
}

/// While it is away it counts as dead, and the others go on; it takes part in what is left.
TEST_F(Restart, AWorkerMayBeAwayForLongerThanTheGrace) {
  const std::string other = is_worker(0) + " && [ -e m/1/persistables.argosy ]";
  start(2, 2,
        settings("sync") + stops("{ " + is_worker(1) + " && " + kFirstStart + " && " +
                                     kInSecondEpoch + "; } || { " + other + "; }",
                                 "go$PADDLE_TRAINER_ID"));
  ASSERT_TRUE(worker(1).says("epoch: 1, batch_id: 10,")) << worker(1).errors();
  worker(1).kill();
  write("go1", "");
  for (size_t i = 0; i < 2; ++i)
    ASSERT_TRUE(server(i).says("worker 1 is taken for dead: its link has been gone for 3 s"));
  ASSERT_TRUE(worker(0).says("epoch: 2, batch_id: 10,")) << worker(0).errors();
  restart_worker(1, 1);
  ASSERT_TRUE(worker(1).says("goes on with epoch 2: the servers have 0 batches"))
      << worker(1).output() << worker(1).errors();
  write("go0", "");
  expect_right_end();
  expect_says(worker(0).output(), "epoch: 1, 2 files were left behind by workers that are lost");
  expect_says(worker(1).output(), "epoch: 2 done");
  expect_learned();
}

TEST_F(Restart, AWorkerThatComesBackToAJobThatIsDoneHasNothingToDo) {
  start(2, 2, settings("async") + stops(is_worker(1) + " && " + kInSecondEpoch));
  ASSERT_TRUE(worker(1).says("epoch: 1, batch_id: 10,")) << worker(1).errors();
  worker(1).kill();
  write("go", "");
  ASSERT_EQ(worker(0).wait(), 0) << worker(0).errors();
  EXPECT_EQ(all_matches(worker(0).output(), "audit: ([0-9]+) instances of").back(),
            std::to_string(kRows));
  workers_[0] = job_->worker(1, command_, 1);
  workers_.pop_back();
  expect_right_end();
  expect_says(worker(0).output(), "all 3 epochs are trained, nothing is left to do");
}

/// The server that knows where the job stands comes back, hears it from the workers that are left,
/// and tells one that comes back later.
TEST_F(Restart, TheFirstServerThenAWorkerAreKilled) {
  start(2, 2, settings("sync") + stops(kInSecondEpoch + " && [ ! -e go ]"));
  ASSERT_TRUE(worker(0).says("epoch: 1, batch_id: 10,")) << worker(0).errors();
  ASSERT_TRUE(worker(1).says("epoch: 1, batch_id: 10,")) << worker(1).errors();
  server(0).kill();
  worker(1).kill();
  write("go", "");
  restart_worker(1, 1);
  restart_server(0, 1);
  expect_right_end();
  expect_says(server(0).output(), "server 0 came back with the model of m/0");
  expect_says(worker(1).output(), "started again and goes on with epoch 1");
  expect_learned();
}

/// A save of an earlier job in the same folder does not count.
TEST_F(Restart, AServerThatIsKilledBeforeTheFirstSaveEndsTheJob) {
  ASSERT_EQ(launch(1, 1, "runner.model_save_path=m runner.epochs=1").exit_code, 0);
  ASSERT_TRUE(fs::exists(folder_ / "m/0/persistables.argosy"));
  start(1, 2, settings("async") + stops("true"), 0);
  ASSERT_TRUE(worker(0).says("epoch: 0, batch_id: 10,")) << worker(0).errors();
  server(1).kill();
  restart_server(1, 1);
  EXPECT_EQ(server(1).wait(), 1);
  expect_says(server(1).errors(),
              "argosy: server 1 was lost and there is no saved model of this job below m: its part "
              "of the parameters is gone\n");
  write("go", "");
  EXPECT_EQ(worker(0).wait(), 1);
  expect_says(worker(0).errors(), "argosy: server 1 at " + job_->address(1) + " is lost for 3 s: ");
  EXPECT_EQ(server(0).wait(), 0) << server(0).output();
}

/// As above, under the launcher, which restarts them itself.
class LauncherRestarts : public Restart {
 protected:
  void launch_again(const std::string& command, const std::string& flags = "") {
    fleetrun_.emplace(folder_, "run",
                      "fleetrun --json --max_restart=2 --server_num=1 --worker_num=2 " + flags +
                          " '" + std::string(ARGOSY_BIN_DIR) + "/'" + command);
  }
  /// Kills a process when the data of worker 1 stand still in the second epoch.
  void kill_in_second_epoch(const std::string& kind, int index) {
    const auto deadline = Clock::now() + kPatience;
    while (!fs::exists(folder_ / "stands") && Clock::now() < deadline)
      std::this_thread::sleep_for(5ms);
    const auto pids =
        all_matches(fleetrun_->errors(), R"("started", "kind": ")" + kind + R"(", "index": )" +
                                             std::to_string(index) + R"(, "pid": ([0-9]+))");
    ASSERT_EQ(pids.size(), 1U) << fleetrun_->errors();
    ASSERT_EQ(::kill(std::stoi(pids[0]), SIGKILL), 0);
  }
  /// As the launcher says at its end.
  void expect_came_back(const std::string& name, const std::string& lost) {
    const std::string text = fleetrun_->errors();
    EXPECT_EQ(all_matches(text, "(" + name +
                                    " was started again once and was back after [0-9.]+ "
                                    "s; lost: " +
                                    lost + ")")
                  .size(),
              1U)
        << text;
  }
  static std::string stands() {
    return "'runner.pipe_command=if " + is_worker(1) + " && " + kFirstStart + " && " +
           kInSecondEpoch +
           "; then head -n 1000; touch stands; until [ -e go ]; do sleep 0.02; done; fi; cat' ";
  }
  std::optional<Process> fleetrun_;
};

TEST_F(LauncherRestarts, AWorkerGoesOn) {
  launch_again(settings("async") + stands());
  kill_in_second_epoch("worker", 1);
  EXPECT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors();
  EXPECT_NE(fleetrun_->errors().find("worker 1 is started again (1 of 2)"), std::string::npos)
      << fleetrun_->errors();
  EXPECT_NE(log("workerlog.1").find("goes on with epoch 1"), std::string::npos)
      << log("workerlog.1");
  expect_came_back("worker 1", "nothing");
  expect_learned();
}

TEST_F(LauncherRestarts, AServerWithoutAJournalComesBackWithTheLastSave) {
  launch_again(settings("async") + stands(), "--durability=none");
  kill_in_second_epoch("server", 0);
  write("go", "");
  EXPECT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors();
  EXPECT_NE(log("serverlog.0").find("server 0 came back with the model of "), std::string::npos)
      << log("serverlog.0");
  expect_came_back("server 0", "what it learned since its last save");
  expect_learned();
}

TEST_F(LauncherRestarts, AServerComesBackWithItsJournal) {
  launch_again(settings("async") + stands());
  kill_in_second_epoch("server", 0);
  write("go", "");
  EXPECT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors();
  expect_says(log("workerlog.0"), "was started again and has its journal, up to exchange ");
  EXPECT_EQ(log("serverlog.0").find("lost"), std::string::npos) << log("serverlog.0");
  expect_came_back("server 0", "nothing");
  expect_learned();
}

/// Programs that are written with Fleet are started again as configurations are.
class FleetRestarts : public LauncherRestarts, public testing::WithParamInterface<const char*> {
 protected:
  void launch_example(const std::string& flags = "", const std::string& model = "ctr_ps.model") {
    fleetrun_.emplace(folder_, "run",
                      "fleetrun --json --max_restart=3 --server_num=2 --worker_num=2 " + flags +
                          " '" ARGOSY_BIN_DIR
                          "/ctr_ps' --rows 8000 --layer 16 --epochs 20 "
                          "--model " +
                          model + " --mode " + std::string(GetParam()));
  }
  /// Once worker 0 has said that an epoch is done.
  void kill(const std::string& kind, int index, const std::string& epoch = "epoch 1  ") {
    const auto deadline = Clock::now() + kPatience;
    while (log("workerlog.0").find(epoch) == std::string::npos && Clock::now() < deadline)
      std::this_thread::sleep_for(5ms);
    const auto pids =
        all_matches(fleetrun_->errors(), R"("started", "kind": ")" + kind + R"(", "index": )" +
                                             std::to_string(index) + R"(, "pid": ([0-9]+))");
    ASSERT_FALSE(pids.empty()) << fleetrun_->errors();
    ASSERT_EQ(::kill(std::stoi(pids.back()), SIGKILL), 0);
  }
};

TEST_P(FleetRestarts, AWorkerGoesOnWhereItWas) {
  launch_example();
  kill("worker", 1);
  EXPECT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors() << log("workerlog.1");
  expect_says(log("workerlog.1"), "argosy: worker 1 was started again: the servers have ");
  expect_says(log("workerlog.0"), "epoch 20  ");
  const auto instances = all_matches(log("workerlog.0"), "epoch 20  .* ([0-9]+) instances");
  ASSERT_EQ(instances.size(), 1U) << log("workerlog.0");
  EXPECT_EQ(instances[0], "8000");
  EXPECT_TRUE(fs::exists(folder_ / "ctr_ps.model/persistables.argosy"));
}

TEST_P(FleetRestarts, TheFirstWorkerGoesOnWhereItWasAndSaves) {
  launch_example();
  kill("worker", 0);
  EXPECT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors() << log("workerlog.0");
  expect_says(log("workerlog.0"), "argosy: worker 0 was started again: the servers have ");
  expect_says(log("workerlog.0"), "saved ctr_ps.model");
  EXPECT_TRUE(fs::exists(folder_ / "ctr_ps.model/persistables.argosy"));
}

/// Each server twice: the job learns what it would have learned, to the bit where steps have an
/// order.
TEST_P(FleetRestarts, ServersGoOnFromTheirJournals) {
  launch_example("--log_dir=before", "undisturbed");
  ASSERT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors();
  launch_example();
  int index = 0;
  for (const char* epoch : {"epoch 1  ", "epoch 4  ", "epoch 8  ", "epoch 12  "})
    kill("server", ++index % 2, epoch);
  EXPECT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors() << log("workerlog.0");
  expect_says(log("workerlog.0"), "was started again and has its journal, up to exchange ");
  const auto instances = all_matches(log("workerlog.0"), "epoch 20  .* ([0-9]+) instances");
  ASSERT_EQ(instances.size(), 1U) << log("workerlog.0");
  EXPECT_EQ(instances[0], "8000");
  if (std::string(GetParam()) != "sync") return;
  Process diff(folder_, "diff", "argosy ckpt diff undisturbed ctr_ps.model");
  EXPECT_EQ(diff.wait(), 0) << diff.output();
}

TEST_P(FleetRestarts, AServerWithoutASaveEndsTheJobByName) {
  launch_example("--durability=none");
  kill("server", 1);
  EXPECT_NE(fleetrun_->wait(), 0) << fleetrun_->errors();
  expect_says(log("serverlog.1"),
              "server 1 was lost and there is no saved model of this job: its part of the "
              "parameters is gone");
  EXPECT_FALSE(fs::exists(folder_ / "ctr_ps.model"));
}

INSTANTIATE_TEST_SUITE_P(Modes, FleetRestarts,
                         testing::Values("sync", "async", "half_async", "geo"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace argosy::e2e

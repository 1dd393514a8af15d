// Every process of a job is killed in one moment, its launcher too, and the same line is given
// again: the job goes on from the journals of its servers.
#include <random>

#include "argosy/world/test_processes.h"
#include "tests/e2e/test_jobs.h"

namespace argosy::e2e {
namespace {

/// Lines come slowly, so that an epoch takes some seconds.
const std::string kSlowly =
    R"('runner.pipe_command=awk "{print; if (NR % 250 == 0) {fflush(); system(\"sleep 0.1\")}}"' )";

class PowerCut : public PsJob {
 protected:
  /// The same line each time; `folder` is what it saves below.
  void launch_it(const std::string& mode, const std::string& folder,
                 const std::string& data = kSlowly) {
    launch_line(
        folder, "--max_restart=1",
        train("runner.model_save_path=" + folder + " runner.resume=True runner.geo_step=5 " +
              "runner.sync_mode=" + mode + " " + data));
  }
  /// The same with a program that is written with Fleet.
  void launch_fleet(const std::string& mode, const std::string& model) {
    launch_line(model, "--resume",
                "ctr_ps --rows 8000 --layer 16 --epochs 20 --model " + model + " --mode " + mode);
  }
  void launch_line(const std::string& name, const std::string& flags, const std::string& command) {
    fleetrun_.emplace(folder_, name + std::to_string(launches_++),
                      "fleetrun " + flags + " --server_num=2 --worker_num=2 --log_dir=log." + name +
                          " '" + std::string(ARGOSY_BIN_DIR) + "/'" + command,
                      Variables{{"ARGOSY_E2E", folder_.filename().string()}});
  }
  std::string said(const std::string& log) const { return content(folder_ / log); }
  void await_words(const std::string& log, const std::string& words) const {
    await([&] { return said(log).find(words) != std::string::npos; },
          words + " in " + log + ":\n" + said(log) + fleetrun_->errors());
  }
  /// All at once, and waits until they are gone.
  void cut_power() {
    while (true) {
      const auto found = processes_with({"ARGOSY_E2E=" + folder_.filename().string()});
      if (found.empty()) break;
      for (const Found& process : found) ::kill(process.pid, SIGKILL);
      std::this_thread::sleep_for(5ms);
    }
    fleetrun_.reset();
  }

  int launches_ = 0;
  std::optional<Process> fleetrun_;
};

class PowerCutModes : public PowerCut, public testing::WithParamInterface<const char*> {};

TEST_P(PowerCutModes, TheSameLineGoesOnFromTheJournals) {
  const auto seed = static_cast<unsigned>(std::random_device{}());
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (const char* const moment : {"epoch: 0, batch_id: 20,", "epoch: 1, batch_id: 10,"}) {
    launch_it(GetParam(), "m");
    await_words("log.m/workerlog.0", moment);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1000));
    cut_power();
  }
  launch_it(GetParam(), "m");
  EXPECT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors() << said("log.m/workerlog.0");
  for (const char* const log : {"log.m/workerlog.0", "log.m/workerlog.1"}) {
    const auto batches = all_matches(
        said(log), "resume from the servers' journals: epoch [12], pass 0, batch ([0-9]+), step");
    EXPECT_EQ(batches.size(), 1U) << said(log);
  }
  EXPECT_NE(said("log.m/serverlog.1").find("server 1: goes on from its journal at step "),
            std::string::npos)
      << said("log.m/serverlog.1");
  launch_it(GetParam(), "whole", "");
  ASSERT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors();
  EXPECT_NEAR(inferred("runner.model_save_path=m"), inferred("runner.model_save_path=whole"),
              kNear);
  if (std::string(GetParam()) != "sync") return;
  const Outcome diff = run("argosy ckpt diff whole/2 m/2");
  EXPECT_EQ(diff.exit_code, 0) << diff.output;
}

/// Programs make their calls from the beginning: what the servers have is not pushed again.
TEST_P(PowerCutModes, AProgramOfFleetGoesOnWithTheFlag) {
  for (const char* const moment : {"epoch 2  ", "epoch 6  "}) {
    launch_fleet(GetParam(), "m");
    await_words("log.m/workerlog.0", moment);
    cut_power();
  }
  launch_fleet(GetParam(), "m");
  EXPECT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors() << said("log.m/workerlog.0");
  for (const char* const log : {"log.m/workerlog.0", "log.m/workerlog.1"})
    EXPECT_NE(said(log).find("goes on from the servers' journals: the servers have "),
              std::string::npos)
        << said(log);
  const auto instances = all_matches(said("log.m/workerlog.0"), "epoch 20  .* ([0-9]+) instances");
  ASSERT_EQ(instances.size(), 1U) << said("log.m/workerlog.0");
  EXPECT_EQ(instances[0], "8000");
  if (std::string(GetParam()) != "sync") return;
  launch_fleet(GetParam(), "whole");
  ASSERT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors();
  const Outcome diff = run("argosy ckpt diff whole m");
  EXPECT_EQ(diff.exit_code, 0) << diff.output;
}

INSTANTIATE_TEST_SUITE_P(Modes, PowerCutModes,
                         testing::Values("sync", "async", "half_async", "geo"),
                         [](const auto& info) { return std::string(info.param); });

/// Never from some journals and a save.
TEST_F(PowerCut, WithoutOneServersJournalAllGoOnFromTheSave) {
  launch_it("async", "m");
  await_words("log.m/workerlog.0", "epoch: 1, batch_id: 10,");
  cut_power();
  fs::remove_all(folder_ / "log.m/journal/server-1");
  launch_it("async", "m");
  EXPECT_EQ(fleetrun_->wait(), 0) << fleetrun_->errors() << said("log.m/workerlog.0");
  const std::string said_by_worker = said("log.m/workerlog.0");
  EXPECT_NE(said_by_worker.find("the job does not go on from its journals: server 1 at "),
            std::string::npos)
      << said_by_worker;
  EXPECT_NE(said_by_worker.find("resume from m/0: epoch 1, 0 batches of it are done"),
            std::string::npos)
      << said_by_worker;
  EXPECT_NE(said("log.m/serverlog.1").find("no journal of an unfinished run to go on from"),
            std::string::npos)
      << said("log.m/serverlog.1");
}

}  // namespace
}  // namespace argosy::e2e

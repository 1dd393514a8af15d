// Jobs whose servers make cuts while they train: what loads them, and what a job that goes on from
// one ends with.
#include "tests/e2e/test_jobs.h"

namespace argosy::e2e {
namespace {

class CutJob : public PsJob {
 protected:
  /// A job of two workers that takes cuts, and keeps all of them.
  Outcome launch_with_cuts(const std::string& settings) const {
    return launch_with_journals(2, settings +
                                       " runner.checkpoint_interval=20 "
                                       "runner.checkpoint_keep=1000");
  }
  Outcome launch_with_journals(int servers, const std::string& settings) const {
    return run(command_with_journals(servers, settings));
  }
  static std::string command_with_journals(int servers, const std::string& settings) {
    const std::string count = std::to_string(servers);
    return "fleetrun --durability=journal --log_path=journals" + count + " --server_num=" + count +
           " --worker_num=2 '" ARGOSY_BIN_DIR "/argosy' train " + "-m config.yaml -o " + settings;
  }
  std::vector<std::string> cuts(const std::string& folder) const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_ / folder))
      if (fs::exists(entry.path() / "persistables.argosy") &&
          entry.path().filename().string().starts_with("cut-"))
        found.push_back(folder + "/" + entry.path().filename().string());
    std::ranges::sort(found, {}, [](const std::string& name) {
      return std::stoi(name.substr(name.rfind('-') + 1));
    });
    return found;
  }
  void copy(const std::string& from, const std::string& to) const {
    fs::create_directories((folder_ / to).parent_path());
    fs::copy(folder_ / from, folder_ / to, fs::copy_options::recursive);
  }
  Outcome ckpt(const std::string& command) const { return run("argosy ckpt " + command); }
};

TEST_F(CutJob, ASyncJobThatGoesOnFromACutEndsWithTheSameBits) {
  const std::string settings = "runner.sync_mode=sync runner.epochs=2 runner.model_save_path=";
  const Outcome whole = launch_with_cuts(settings + "whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.errors << log("workerlog.0") << log("serverlog.0");
  const std::vector<std::string> taken = cuts("whole");
  ASSERT_GT(taken.size(), 4U) << whole.output;
  const Outcome verified = ckpt("verify whole");
  EXPECT_EQ(verified.exit_code, 0) << verified.output << verified.errors;
  // In the first epoch and in the second, by as many servers and by fewer.
  int servers = 2;
  for (const size_t which : {taken.size() / 4, 3 * taken.size() / 4}) {
    const std::string own = "resumed" + std::to_string(which);
    copy(taken[which], own + "/cut-1");
    const Outcome rest = launch_with_journals(servers--, settings + own + " runner.resume=True");
    ASSERT_EQ(rest.exit_code, 0) << rest.errors << log("workerlog.0") << log("serverlog.0");
    EXPECT_NE(rest.output.find("resume from " + own + "/cut-1"), std::string::npos) << rest.output;
    const Outcome same = ckpt("diff whole/1 " + own + "/1");
    EXPECT_EQ(same.exit_code, 0) << taken[which] << ": " << same.output;
  }
}

class KilledCutJob : public CutJob, public testing::WithParamInterface<const char*> {};

TEST_P(KilledCutJob, GoesOnFromTheNewestCutWhenItsProcessesAndJournalsAreLost) {
  const std::string settings =
      "'runner.pipe_command=head -n 3000; until [ -e go ]; do sleep 0.02; done; cat' "
      "runner.epochs=1 runner.checkpoint_interval=10 runner.geo_step=5 runner.sync_mode=" +
      std::string(GetParam()) + " runner.model_save_path=";
  {
    Process job(folder_, "killed", command_with_journals(2, settings + "m"));
    EXPECT_TRUE(job.says("m/cut-1: ")) << job.output() << job.errors();
    job.kill();
  }
  fs::rename(folder_ / "journals2", folder_ / "lost");  // the newest state would be there
  write("go", "");
  const Outcome rest = launch_with_journals(2, settings + "m runner.resume=True");
  ASSERT_EQ(rest.exit_code, 0) << rest.errors << log("workerlog.0") << log("serverlog.0");
  EXPECT_NE(rest.output.find("resume from m/cut-"), std::string::npos) << rest.output;
  EXPECT_NE(rest.output.find("worker 1 goes on behind batch "), std::string::npos) << rest.output;
  ASSERT_EQ(launch_with_journals(2, settings + "whole").exit_code, 0);
  if (std::string(GetParam()) == "sync") {
    const Outcome same = ckpt("diff whole/0 m/0");
    EXPECT_EQ(same.exit_code, 0) << same.output;
  }
  const double whole = inferred("runner.epochs=1 runner.model_save_path=whole");
  EXPECT_NEAR(inferred("runner.epochs=1 runner.model_save_path=m"), whole, kNear);
}

INSTANTIATE_TEST_SUITE_P(Modes, KilledCutJob, testing::Values("sync", "async", "half_async", "geo"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(CutJob, CommandsTakeACutForASavedModel) {
  const Outcome job =
      launch_with_cuts("runner.sync_mode=async runner.epochs=1 runner.model_save_path=m");
  ASSERT_EQ(job.exit_code, 0) << job.errors << log("workerlog.0") << log("serverlog.0");
  const std::vector<std::string> taken = cuts("m");
  ASSERT_GT(taken.size(), 1U) << job.output;
  const std::string& cut = taken.back();
  EXPECT_NE(ckpt("list m").output.find(cut + ": a cut, goes on with epoch 1"), std::string::npos)
      << ckpt("list m").output;
  EXPECT_EQ(ckpt("inspect " + cut).exit_code, 0);
  EXPECT_EQ(ckpt("export " + cut + " --to out --format npy").exit_code, 0);
  EXPECT_EQ(ckpt("reshard " + cut + " --servers 3 --to three").exit_code, 0);
  const Outcome same = ckpt("diff " + cut + " three");
  EXPECT_EQ(same.exit_code, 0) << same.output << same.errors;
  EXPECT_EQ(ckpt("diff " + taken.front() + " " + cut).exit_code, 1);
  const Outcome warm = run(train("runner.epochs=1 runner.warmup_model_path=" + cut));
  EXPECT_EQ(warm.exit_code, 0) << warm.errors;
  // Damage is named, and nothing is trained from it.
  for (const auto& entry : fs::directory_iterator(folder_ / cut / "server-1"))
    fs::resize_file(entry.path(), fs::file_size(entry.path()) - 1);
  const Outcome damaged = run(train("runner.epochs=1 runner.warmup_model_path=" + cut));
  EXPECT_NE(damaged.exit_code, 0);
  EXPECT_EQ(lines_in(damaged.errors), 1U) << damaged.errors;
  EXPECT_NE(damaged.errors.find(cut + "/server-1/"), std::string::npos) << damaged.errors;
  EXPECT_EQ(ckpt("verify " + cut).exit_code, 1);
}

TEST_F(CutJob, WithoutAJournalItSaysWhyThereIsNone) {
  const Outcome job =
      launch(1, 1, "runner.epochs=1 runner.checkpoint_interval=20 runner.model_save_path=m");
  EXPECT_EQ(job.exit_code, 0) << job.errors;
  EXPECT_NE(job.output.find("a cut is made of journals, and there is none"), std::string::npos)
      << job.output;
  const Outcome local = run(train("runner.epochs=1 runner.checkpoint_interval=20"));
  EXPECT_NE(local.output.find("there are no servers to make checkpoints of"), std::string::npos)
      << local.output;
}

}  // namespace
}  // namespace argosy::e2e

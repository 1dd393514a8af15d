// Ranks that train together as a user starts them: argosy train and an example, under fleetrun.
#include "tests/e2e/test_jobs.h"

namespace argosy::e2e {
namespace {

class RankJob : public PsJob {
 protected:
  Outcome launch_ranks(int ranks, const std::string& command) const {
    return run("fleetrun --nproc_per_node=" + std::to_string(ranks) + " '" ARGOSY_BIN_DIR "'/" +
               command);
  }
};

TEST_F(RankJob, LearnsAsMuchAsOneProcess) {
  const double alone = local_auc();
  const Outcome job = launch_ranks(2, train("runner.model_save_path=together"));
  ASSERT_EQ(job.exit_code, 0) << job.output << job.errors << log("workerlog.1");
  EXPECT_NE(log("workerlog.1").find("rank 1 of 2 at 127.0.0.1:"), std::string::npos);
  EXPECT_NE(log("workerlog.0").find("data: the files are dealt out to 2 ranks"), std::string::npos);
  EXPECT_EQ(instances(2).back(), kRows);
  EXPECT_NEAR(inferred("runner.model_save_path=together"), alone, kNear);
}

TEST_F(RankJob, SharesBatchesWhereThereAreFewerFilesThanRanks) {
  std::string one_file = kConfig;
  const size_t at = one_file.find("files=4");
  ASSERT_NE(at, std::string::npos) << one_file;
  one_file.replace(at, 7, "files=1");
  write("config.yaml", one_file);
  const Outcome job = launch_ranks(2, train("runner.model_save_path=m runner.epochs=1"));
  ASSERT_EQ(job.exit_code, 0) << job.output << job.errors << log("workerlog.1");
  EXPECT_NE(log("workerlog.0")
                .find("data: every 2 batches of all files, as there are fewer files "
                      "than ranks"),
            std::string::npos);
  EXPECT_GT(inferred("runner.model_save_path=m runner.epochs=1"), 0.6);
}

TEST_F(RankJob, ResumesWithAnotherNumberOfRanks) {
  const std::string settings = "runner.model_save_path=m ";
  ASSERT_EQ(launch_ranks(2, train(settings + "runner.epochs=1")).exit_code, 0);
  const Outcome second = launch_ranks(3, train(settings + "runner.epochs=3 runner.resume=True"));
  ASSERT_EQ(second.exit_code, 0) << second.output << second.errors << log("workerlog.2");
  EXPECT_NE(second.output.find("resume from m/0"), std::string::npos) << second.output;
  EXPECT_NEAR(inferred("runner.model_save_path=m"), local_auc(), kNear);
}

/// Saves, exports, tests and resumes with rows that no rank has all of.
TEST_F(RankJob, ShardsTablesOverTheRanks) {
  const std::string shards = "runner.embedding_mode=sharded runner.use_inference=True ";
  ASSERT_EQ(launch_ranks(2, train("runner.model_save_path=replicated")).exit_code, 0);
  const Outcome job = launch_ranks(2, train(shards + "runner.model_save_path=sharded"));
  ASSERT_EQ(job.exit_code, 0) << job.output << job.errors << log("workerlog.1");
  EXPECT_NE(log("workerlog.0").find("embedding_mode sharded"), std::string::npos);
  const double replicated = inferred("runner.model_save_path=replicated");
  EXPECT_NEAR(inferred("runner.model_save_path=sharded"), replicated, 0.003);

  const std::string settings = shards + "runner.model_save_path=m ";
  ASSERT_EQ(launch_ranks(3, train(settings + "runner.epochs=1")).exit_code, 0);
  const Outcome second = launch_ranks(2, train(settings + "runner.epochs=3 runner.resume=True"));
  ASSERT_EQ(second.exit_code, 0) << second.output << second.errors << log("workerlog.1");
  EXPECT_NE(second.output.find("resume from m/0"), std::string::npos) << second.output;
  EXPECT_NEAR(inferred("runner.model_save_path=m"), replicated, kNear);
}

TEST_F(RankJob, RefusesAnUnknownEmbeddingMode) {
  const Outcome job = launch_ranks(2, train("runner.embedding_mode=split"));
  EXPECT_NE(job.exit_code, 0);
  EXPECT_NE((job.output + job.errors + log("workerlog.0"))
                .find("expected one of replicated, sharded, got 'split'"),
            std::string::npos)
      << job.output << job.errors << log("workerlog.0");
}

TEST_F(RankJob, RunsTheExampleUnchanged) {
  const auto accuracy = [](const std::string& text, const std::string& rank) {
    const auto found = all_matches(text, "rank " + rank + ": test accuracy ([0-9.]+)");
    return found.empty() ? 0 : std::stod(found[0]);
  };
  const Outcome alone = run("mnist_collective --epochs 5");
  EXPECT_EQ(alone.exit_code, 0) << alone.output << alone.errors;
  EXPECT_GT(accuracy(alone.output, "0 of 1"), 0.9) << alone.output;
  for (const char* graph : {"", " --dynamic"}) {
    const Outcome both = launch_ranks(2, std::string("mnist_collective --epochs 5") + graph);
    ASSERT_EQ(both.exit_code, 0) << both.output << both.errors << log("workerlog.1");
    const double first = accuracy(log("workerlog.0"), "0 of 2");
    EXPECT_GT(first, 0.9);
    EXPECT_EQ(first, accuracy(log("workerlog.1"), "1 of 2"));
  }
}

/// The example on MNIST itself: lines as the documents show them, and what it reaches.
TEST_F(RankJob, ReadsDigitsWithAnAccuracyOf97Percent) {
  if (std::getenv("ARGOSY_DATA") == nullptr) GTEST_SKIP() << "needs MNIST: set ARGOSY_DATA";
  const Outcome both = launch_ranks(2, "mnist_collective --epochs 5");
  ASSERT_EQ(both.exit_code, 0) << both.output << both.errors;
  const std::string pattern =
      "epoch: 4, step:400, train_loss: ([0-9.]+), total time cost = [0-9.]+, speed: [0-9.]+\n";
  EXPECT_EQ(all_matches(log("workerlog.0"), pattern).size(), 1U) << log("workerlog.0");
  const auto accuracy = all_matches(log("workerlog.0"), "rank 0 of 2: test accuracy ([0-9.]+)");
  ASSERT_EQ(accuracy.size(), 1U);
  EXPECT_GE(std::stod(accuracy[0]), 0.97);
}

}  // namespace
}  // namespace argosy::e2e

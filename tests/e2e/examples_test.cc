// The examples as a user runs them: whole programs, both graph modes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>

namespace {

struct Outcome {
  int exit_code;
  std::string output;
};

/// Runs a program of build/bin in a folder of its own, where it may leave files.
Outcome run(const std::string& command, const std::filesystem::path& folder) {
  const std::string line =
      "cd '" + folder.string() + "' && '" ARGOSY_BIN_DIR "'/" + command + " 2>&1";
  std::FILE* pipe = ::popen(line.c_str(), "r");
  std::string output;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) output.append(buffer, n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

/// The lines that hold losses; others hold rates, which differ from run to run.
std::string losses(const std::string& output) {
  std::string found;
  const std::regex line("(pass|epoch) \\d+  [^\n]*loss [^\n]*");
  for (std::sregex_iterator it(output.begin(), output.end(), line), end; it != end; ++it)
    if (it->str().find("samples/s") == std::string::npos) found += it->str() + "\n";
  return found;
}

class Examples : public testing::Test {
 public:
  Examples() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "argosy_examples_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Examples() override { std::filesystem::remove_all(folder_); }

 protected:
  std::filesystem::path folder_;
};

TEST_F(Examples, FitALineStopsUnderTenWithTheSameLossesInBothModes) {
  const Outcome recorded = run("fit_a_line --graph static", folder_),
                eager = run("fit_a_line --graph dynamic", folder_);
  EXPECT_EQ(recorded.exit_code, 0) << recorded.output;
  EXPECT_NE(recorded.output.find("under 10, the line fits"), std::string::npos) << recorded.output;
  EXPECT_EQ(losses(recorded.output), losses(eager.output));
  EXPECT_NE(losses(recorded.output), "");
}

TEST_F(Examples, MnistLearnsWithTheSameLossesInBothModes) {
  const Outcome recorded = run("mnist_mlp --graph static", folder_),
                eager = run("mnist_mlp --graph dynamic", folder_);
  EXPECT_EQ(recorded.exit_code, 0) << recorded.output;
  EXPECT_EQ(losses(recorded.output), losses(eager.output));
  std::smatch accuracy;
  ASSERT_TRUE(std::regex_search(recorded.output, accuracy,
                                std::regex("epoch 5  .*test accuracy ([0-9.]+)")))
      << recorded.output;
  EXPECT_GE(std::stod(accuracy[1]), 0.97) << recorded.output;
}

TEST_F(Examples, RefuseAnUnknownArgumentInOneLine) {
  const Outcome refused = run("fit_a_line --grph static", folder_);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(
      refused.output,
      "error: unknown argument '--grph', expected --graph static, --graph dynamic or --program\n");
}

TEST_F(Examples, ProgramsTakeLittleMoreMemoryThanLivenessRequires) {
  for (const std::string example : {"fit_a_line", "mnist_mlp"}) {
    const Outcome plan = run(example + " --program > program.txt && '" ARGOSY_BIN_DIR
                                       "'/argosy plan --memory program.txt",
                             folder_);
    EXPECT_EQ(plan.exit_code, 0) << plan.output;
    std::smatch ratio;
    ASSERT_TRUE(std::regex_search(plan.output, ratio, std::regex("ratio ([0-9.]+)")))
        << plan.output;
    EXPECT_LE(std::stod(ratio[1]), 1.2) << plan.output;
  }
}

TEST_F(Examples, ToolDrawsAndPlansAProgramText) {
  const std::string golden = ARGOSY_SOURCE_DIR "/tests/golden/small_network.txt";
  const Outcome dot = run("argosy graph " + golden + " --dot", folder_);
  EXPECT_EQ(dot.exit_code, 0) << dot.output;
  EXPECT_TRUE(dot.output.starts_with("digraph program {")) << dot.output;
  const Outcome plan = run("argosy plan --memory --batch 128 " + golden, folder_);
  EXPECT_EQ(plan.exit_code, 0) << plan.output;
  EXPECT_TRUE(
      std::regex_search(plan.output, std::regex("activations at batch 128: \\d+ bytes planned")))
      << plan.output;
  const Outcome absent = run("argosy graph absent.txt", folder_);
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_EQ(absent.output, "argosy: open absent.txt: No such file or directory\n");
}

}  // namespace

// The examples as a user runs them: whole programs, both graph modes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "argosy/base/test_support.h"

namespace {

struct Outcome {
  int exit_code;
  std::string output;
};

/// Runs a program of build/bin in `folder`, where it may leave files.
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
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (line.find("loss ") != std::string::npos && line.find("samples/s") == std::string::npos)
      found += line + "\n";
  return found;
}

/// The number after the last occurrence of `label`, or -1.
double number_after(const std::string& output, const std::string& label) {
  const auto at = output.rfind(label);
  return at == std::string::npos ? -1 : std::stod(output.substr(at + label.size()));
}

class Examples : public testing::Test {
 protected:
  const argosy::TestFolder test_;
  const std::filesystem::path folder_ = test_.path();
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
  EXPECT_GE(number_after(recorded.output, "test accuracy "), 0.97) << recorded.output;
}

TEST_F(Examples, RefuseABadArgumentInOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"fit_a_line --grph static",
       "unknown argument '--grph', expected --graph, --program, or --help"},
      {"fit_a_line --graph frozen", "--graph is 'frozen', expected static or dynamic"},
      {"mnist_collective --epochs", "--epochs has no value, expected --epochs N"},
      {"mnist_collective --epochs 1e3", "--epochs is '1e3', expected a whole number"},
      {"ctr_ps --rows -5", "--rows is '-5', expected a whole number"}};
  for (const auto& [command, expected] : cases) {
    const Outcome refused = run(command, folder_);
    EXPECT_EQ(refused.exit_code, 2) << command;
    EXPECT_EQ(refused.output, std::string("error: ") + expected + "\n") << command;
  }
}

TEST_F(Examples, TellTheirFlags) {
  const Outcome help = run("mnist_collective --help", folder_);
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.output.find("--epochs N"), std::string::npos) << help.output;
}

TEST_F(Examples, ProgramsTakeLittleMoreMemoryThanLivenessRequires) {
  for (const std::string example : {"fit_a_line", "mnist_mlp"}) {
    const Outcome plan = run(example + " --program > program.txt && '" ARGOSY_BIN_DIR
                                       "'/argosy plan --memory program.txt",
                             folder_);
    EXPECT_EQ(plan.exit_code, 0) << plan.output;
    const double ratio = number_after(plan.output, "ratio ");
    EXPECT_TRUE(ratio >= 1 && ratio <= 1.2) << plan.output;
  }
}

TEST_F(Examples, ToolDrawsAndPlansAProgramText) {
  const std::string golden = ARGOSY_SOURCE_DIR "/tests/golden/small_network.txt";
  const Outcome dot = run("argosy graph " + golden + " --dot", folder_);
  EXPECT_EQ(dot.exit_code, 0) << dot.output;
  EXPECT_TRUE(dot.output.starts_with("digraph program {")) << dot.output;
  const Outcome plan = run("argosy plan --memory --batch 128 " + golden, folder_);
  EXPECT_EQ(plan.exit_code, 0) << plan.output;
  EXPECT_GT(number_after(plan.output, "activations at batch 128: "), 0) << plan.output;
  const Outcome absent = run("argosy graph absent.txt", folder_);
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_EQ(absent.output, "argosy: open absent.txt: No such file or directory\n");
}

}  // namespace

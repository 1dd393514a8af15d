// argosy doctor as a user runs it: the program itself, on this machine, with faults made for it.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "argosy/base/test_support.h"
#include "tests/e2e/loopback.h"

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int exit_code;  // -1: a signal ended it
  std::string output;
};

constexpr const char* kConfig = R"(model: dnn
runner:
  train_data_dir: train
  reader: criteo
  train_batch_size: 50
  epochs: 1
  split_file_list: True
hyper_parameters:
  optimizer:
    class: Adam
    learning_rate: 0.001
  sparse_inputs_slots: 27
  sparse_feature_number: 1000
  sparse_feature_dim: 4
  dense_input_dim: 13
  fc_sizes: [8]
)";

/// Runs the tools of build/bin in a temporary folder, without proxies.
class Doctor : public testing::Test {
 protected:
  Outcome run(const std::string& command) const {
    const std::string line =
        "cd '" + folder_.path() +
        "' && unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy "
        "NO_PROXY POD_IP; export PATH='" ARGOSY_BIN_DIR "':$PATH; exec 2>&1; " +
        command;
    std::FILE* const pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("no shell");
    std::string output;
    char block[512];
    for (size_t n = 0; (n = std::fread(block, 1, sizeof(block), pipe)) > 0;)
      output.append(block, n);
    const int status = ::pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
  }

  argosy::TestFolder folder_;
};

bool has(const Outcome& outcome, const std::string& part) {
  return outcome.output.find(part) != std::string::npos;
}

TEST_F(Doctor, TellsTheMachineAndPassesASoundOne) {
  const Outcome outcome = run("argosy doctor --server_num=1 --worker_num=1 -- true");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const char* line : {"argosy  ", "\ncpu     ", "\nmemory  ", "\nsystem  Linux "})
    EXPECT_TRUE(has(outcome, line)) << line << "is missing in\n" << outcome.output;
  EXPECT_TRUE(fs::is_empty(folder_.path())) << "it only looks";
}

TEST_F(Doctor, NamesTheProcessThatHoldsAPort) {
  const argosy::e2e::Loopback socket;
  const std::string taken = socket.address();
  const Outcome outcome = run("argosy doctor --servers=" + taken + " --workers=127.0.0.1");
  EXPECT_EQ(outcome.exit_code, 1);
  const std::string me = std::to_string(::getpid());
  EXPECT_TRUE(has(outcome, "error: " + taken + " is taken by process " + me + " ("))
      << outcome.output;
  EXPECT_TRUE(has(outcome, "  fix: kill " + me + "\n")) << outcome.output;
}

TEST_F(Doctor, FindsProxiesLimitsFoldersAndCommands) {
  folder_.write("file", "");
  const Outcome outcome =
      run("ulimit -n 40; export ALL_PROXY=proxy:1; "
          "argosy doctor --model_dir=file/model --worker_num=1 --server_num=1 -- no-such-program");
  EXPECT_EQ(outcome.exit_code, 1);
  for (const char* part :
       {"error: a process may open 40 files", "error: file/model cannot be written to: ",
        "error: no-such-program is in no folder of PATH", "warning: ALL_PROXY set"})
    EXPECT_TRUE(has(outcome, part)) << part << " is missing in\n" << outcome.output;
}

TEST_F(Doctor, RunsTheCheckOfATraining) {
  folder_.write("config.yaml", kConfig);
  ASSERT_EQ(run("argosy gen criteo --rows 200 --vocab 10 --files 2 --out train").exit_code, 0);
  const std::string train = " -- argosy train -m config.yaml -o runner.thread_num=1";
  const Outcome enough = run("argosy doctor --server_num=1 --worker_num=2" + train);
  EXPECT_EQ(enough.exit_code, 0) << enough.output;
  const Outcome few = run("argosy doctor --server_num=1 --worker_num=3" + train);
  EXPECT_EQ(few.exit_code, 1);
  EXPECT_TRUE(has(few,
                  "error: train: runner.split_file_list deals out 2 files to 3 workers, expected a "
                  "file for each or fewer workers\n"))
      << few.output;
  EXPECT_TRUE(has(few,
                  "  fix: argosy train --check --workers=3 -m config.yaml -o "
                  "runner.thread_num=1\n"))
      << few.output;
  const Outcome wrong = run("argosy doctor --worker_num=2" + train + " runner.epoch=1");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_TRUE(has(wrong, "runner.epoch")) << wrong.output;
}

TEST_F(Doctor, CountsFilesThatAreYetToBeGenerated) {
  folder_.write("config.yaml", kConfig);
  const std::string check =
      "argosy train --check -m config.yaml -o 'runner.generate=criteo(rows=200, files=2)'";
  EXPECT_EQ(run(check + " --workers=2").exit_code, 0) << run(check + " --workers=2").output;
  const Outcome few = run(check + " --workers=3");
  EXPECT_EQ(few.exit_code, 1);
  EXPECT_TRUE(has(few, "deals out 2 files to 3 workers")) << few.output;
}

TEST_F(Doctor, PrintsOneLineOfJson) {
  const Outcome outcome = run("argosy doctor --json -- no-such-program");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.output.starts_with("{\"machine\": {\"argosy\": \"")) << outcome.output;
  EXPECT_TRUE(outcome.output.ends_with("]}\n")) << outcome.output;
  EXPECT_TRUE(has(outcome,
                  "{\"severity\": \"error\", \"what\": \"no-such-program is in no folder "
                  "of PATH\", \"why\": \""))
      << outcome.output;
  EXPECT_EQ(outcome.output.find('\n'), outcome.output.size() - 1);
}

}  // namespace

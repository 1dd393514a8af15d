// argosy ckpt as a user runs it: exit codes, and a save of one epoch that got a file of another.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "argosy/base/test_support.h"

namespace {

namespace fs = std::filesystem;
using argosy::has;

struct Outcome {
  int exit_code;  // -1: a signal ended it
  std::string output;
};

/// Runs argosy in a folder of its own, which has two saved models and a configuration for them.
class CkptCommand : public testing::Test {
 protected:
  CkptCommand() {
    const fs::path golden = fs::path(ARGOSY_SOURCE_DIR) / "tests/golden/saved_model";
    fs::copy(golden / "config.yaml", fs::path(folder_.path()) / "config.yaml");
    fs::copy(golden / "servers", fs::path(folder_.path()) / "servers", fs::copy_options::recursive);
    fs::copy(golden / "local", fs::path(folder_.path()) / "local", fs::copy_options::recursive);
  }

  Outcome run(const std::string& arguments) const {
    const std::string line =
        "cd '" + folder_.path() + "' && exec 2>&1; '" ARGOSY_BIN_DIR "/argosy' " + arguments;
    std::FILE* const pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("no shell");
    std::string output;
    char block[512];
    for (size_t n = 0; (n = std::fread(block, 1, sizeof(block), pipe)) > 0;)
      output.append(block, n);
    const int status = ::pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
  }

  const argosy::TestFolder folder_;
};

TEST_F(CkptCommand, ExitCodesSayWhatWasFound) {
  EXPECT_EQ(run("ckpt verify .").exit_code, 0);
  EXPECT_EQ(run("ckpt diff local/0 local/0").exit_code, 0);
  EXPECT_EQ(run("ckpt diff local/0 servers/0").exit_code, 1);
  EXPECT_EQ(run("ckpt reshard servers/0 --servers 3 --to three").exit_code, 0);
  EXPECT_EQ(run("ckpt diff servers/0 three").exit_code, 0);
  const Outcome typo = run("ckpt inspect local/0 --table embeding");
  EXPECT_EQ(typo.exit_code, 1);
  EXPECT_EQ(typo.output, "argosy: local/0: has no table 'embeding', did you mean embedding?\n");
  const Outcome command = run("ckpt verifi local/0");
  EXPECT_NE(command.exit_code, 0);
  EXPECT_EQ(command.output, "argosy: unknown command verifi, did you mean verify?\n");
}

TEST_F(CkptCommand, AFileOfAnotherSaveIsFoundAndNotLoaded) {
  EXPECT_EQ(run("ckpt merge local/0 --to model/0").exit_code, 0);
  EXPECT_EQ(run("ckpt merge servers/0 --to model/1").exit_code, 0);
  EXPECT_EQ(run("infer -m config.yaml -o runner.infer_load_path=model").exit_code, 0);
  fs::copy_file(folder_.path() + "/model/1/embedding.1.rows",
                folder_.path() + "/model/0/embedding.1.rows", fs::copy_options::overwrite_existing);
  const std::string trouble = "model/0/embedding.1.rows: is of another save, its sum is ";
  const Outcome verify = run("ckpt verify model");
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_TRUE(has(verify.output, "BAD  " + trouble)) << verify.output;
  EXPECT_TRUE(has(verify.output, "argosy: 1 of 4 bad, the first: " + trouble)) << verify.output;
  const Outcome infer = run("infer -m config.yaml -o runner.infer_load_path=model");
  EXPECT_EQ(infer.exit_code, 1);
  EXPECT_TRUE(has(infer.output, trouble)) << infer.output;
}

TEST_F(CkptCommand, AnImportSaysWhetherTheModelLoadsIt) {
  const std::string pickles = std::string(ARGOSY_SOURCE_DIR) + "/tests/golden/pickles/";
  fs::create_directory(folder_.path() + "/paddle");
  fs::copy_file(pickles + "tensors4.pdparams", folder_.path() + "/paddle/rec.pdparams");
  const Outcome without = run("ckpt import paddle --to plain");
  EXPECT_EQ(without.exit_code, 0) << without.output;
  const Outcome with =
      run("ckpt import --rename fc.weight=fc.0.w paddle --to checked -m config.yaml");
  EXPECT_EQ(with.exit_code, 1);
  EXPECT_TRUE(has(with.output, "checked/persistables.argosy: 'fc.0.w' is f32[2,3]")) << with.output;
}

}  // namespace

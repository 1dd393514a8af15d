// Every launch line of the documents that argosy answers to: planned on each of its machines, and
// run where one machine is enough. docs/reference/fleetrun.md lists them.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "argosy/base/test_support.h"
#include "tests/e2e/launch_lines.h"

namespace {

using namespace argosy::e2e;
namespace fs = std::filesystem;

struct Outcome {
  int exit_code;
  std::string output;  // with the errors
};

Outcome shell(const std::string& line) {
  std::FILE* const pipe = ::popen(("(" + line + ") 2>&1").c_str(), "r");
  std::string output;
  std::array<char, 4096> block;
  for (size_t n = 0; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    output.append(block.data(), n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

/// Each process as its difference from the previous one of its kind; programs without folders.
std::string shortened(const std::string& plan) {
  std::istringstream in(plan);
  std::map<std::string, std::map<std::string, std::string>> seen;
  std::string text, kind;
  for (std::string line; std::getline(in, line);) {
    const size_t equals = line.find('=');
    if (!line.starts_with("  ")) {
      kind = line.substr(0, line.find(' '));
    } else if (line.find(".py") != std::string::npos) {
      line = "  " + std::regex_replace(line, std::regex("[^ ]*/(python3|tools/)"), "$1").substr(2);
    } else if (equals != std::string::npos) {
      std::string& before = seen[kind][line.substr(0, equals)];
      if (before == line) continue;
      before = line;
    }
    text += line + "\n";
  }
  return text;
}

class LaunchLines : public testing::TestWithParam<LaunchLine> {
 protected:
  LaunchLines() {
    for (const char* script : {"train.py", "ctr_app.py"}) folder_.write(script, kTalkingScript);
  }
  Outcome fleetrun(const std::string& host, const std::string& more) const {
    const LaunchLine& line = GetParam();
    return shell("cd '" + folder_.path() + "' && unset CUDA_VISIBLE_DEVICES POD_IP && " +
                 (line.flags.find("--gpus") == std::string::npos
                      ? ""
                      : "export ARGOSY_EMULATED_DEVICES=8 && ") +
                 (line.cards.empty() ? "" : "export CUDA_VISIBLE_DEVICES=" + line.cards + " && ") +
                 (host.empty() ? "" : "export POD_IP=" + host + " && ") +
                 "'" ARGOSY_BIN_DIR "'/fleetrun " + more + " " + line.flags + " " + line.script);
  }
  const argosy::TestFolder folder_;
};

TEST_P(LaunchLines, IsPlannedOnEachMachine) {
  std::string plans;
  const std::vector<std::string>& hosts = GetParam().hosts;
  for (const std::string& host : hosts.empty() ? std::vector<std::string>{""} : hosts) {
    const Outcome plan = fleetrun(host, "--dry-run");
    EXPECT_EQ(plan.exit_code, 0) << plan.output;
    plans += (host.empty() ? "" : "on " + host + ": ") + shortened(plan.output);
  }
  argosy::expect_golden("launch_lines/" + GetParam().name + ".txt", plans);
}

/// Lines of one machine; many_hosts_test runs some of two, ToolsTrain those that train.
class LocalLines : public LaunchLines {};

std::vector<LaunchLine> local_lines() {
  std::vector<LaunchLine> all = launch_lines();
  std::erase_if(all, [](const LaunchLine& line) {
    return !line.hosts.empty() || line.script.find("tools/") != std::string::npos;
  });
  return all;
}

TEST_P(LocalLines, Runs) {
  const Outcome outcome = fleetrun("", "--log_level=WARNING --log-all");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

const auto kName = [](const auto& line) { return line.param.name; };
INSTANTIATE_TEST_SUITE_P(Seeds, LaunchLines, testing::ValuesIn(launch_lines()), kName);
INSTANTIATE_TEST_SUITE_P(Seeds, LocalLines, testing::ValuesIn(local_lines()), kName);

/// The lines of the models' document train for real, on a copy of a model with little data.
class ToolsTrain : public testing::Test {
 protected:
  /// A folder with models/MODEL in it.
  void copy(const std::string& model) const {
    const fs::path from = fs::path(ARGOSY_SOURCE_DIR) / "models" / model,
                   to = fs::path(folder_.path()) / "models" / model;
    fs::create_directories(to);
    for (const auto& entry : fs::directory_iterator(from))
      if (entry.is_regular_file()) fs::copy(entry.path(), to);
    std::ifstream in(to / "config.yaml");
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const size_t rows = text.find("rows=300000");
    if (rows != std::string::npos)
      text.replace(rows, std::string("rows=300000").size(), "rows=4000");
    std::ofstream(to / "config.yaml") << text;
  }
  Outcome run(const std::string& from, const std::string& line,
              const std::string& devices = "") const {
    return shell("cd '" + folder_.path() + "/" + from +
                 "' && unset CUDA_VISIBLE_DEVICES ARGOSY_DATA && ARGOSY_EMULATED_DEVICES='" +
                 devices + "' '" + ARGOSY_BIN_DIR + "'/fleetrun " + line);
  }
  const argosy::TestFolder folder_;
};

TEST_F(ToolsTrain, WithServers) {
  copy("rank/dnn");
  const Outcome outcome = run(
      "",
      "--worker_num=1 --server_num=1 tools/static_ps_trainer.py -m models/rank/dnn/config.yaml");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("test AUC"), std::string::npos) << outcome.output;
}

TEST_F(ToolsTrain, OnOneMachineWithoutCards) {
  copy("rank/wide_deep");
  for (const char* tool : {"trainer.py", "static_trainer.py"}) {
    const Outcome outcome =
        run("models/rank/wide_deep", "../../../tools/" + std::string(tool) + " -m config.yaml");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("epoch: 0 done"), std::string::npos) << outcome.output;
  }
}

/// The last line of the log that says how the test went, without its time.
std::string test_line(const std::string& output) {
  const size_t begin = output.rfind("test: loss");
  return begin == std::string::npos ? output
                                    : output.substr(begin, output.find('\n', begin) - begin);
}

class ToolsTrainRanks : public ToolsTrain, public testing::WithParamInterface<const char*> {};

TEST_P(ToolsTrainRanks, TheSameByBothToolsOnTwoProcessesAndOnTwoEmulatedDevices) {
  const std::string model = GetParam();
  copy(model);
  std::vector<std::string> ends;
  const auto train = [&](const std::string& flags, const std::string& tool,
                         const std::string& settings, const std::string& devices) {
    const Outcome outcome =
        run("models/" + model,
            flags + " ../../../tools/" + tool + " -m config.yaml -o runner.epochs=1 " +
                "runner.use_fleet=True " + settings,
            devices);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("rank 0 of 2"), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.output.find("data: "), std::string::npos) << outcome.output;
    ends.push_back(test_line(outcome.output));
    return outcome.output;
  };
  train("--nproc_per_node=2", "trainer.py", "", "");
  train("--nproc_per_node=2", "static_trainer.py", "", "");
  const std::string log = train("", "static_trainer.py", "runner.use_gpu=True", "2");
  EXPECT_NE(log.find("emulated"), std::string::npos) << log;
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_EQ(ends[1], ends[2]);
}

INSTANTIATE_TEST_SUITE_P(Models, ToolsTrainRanks,
                         testing::Values("rank/dnn", "rank/wide_deep", "vision/mnist"),
                         [](const auto& model) {
                           return fs::path(model.param).filename().string();
                         });

}  // namespace

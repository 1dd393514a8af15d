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

namespace {

namespace fs = std::filesystem;

/// A line as it is printed, with the placeholders filled in.
struct Line {
  std::string name, flags;
  std::string cards = {};               // CUDA_VISIBLE_DEVICES
  std::vector<std::string> hosts = {};  // those to plan for, where there are several
  std::string script = "train.py";
};

const std::string kServers = R"(--servers="10.0.0.1:6170,10.0.0.2:6171" )";
const std::string kEightWorkers =
    R"(--workers="10.0.0.1:6172,10.0.0.1:6173,10.0.0.1:6174,10.0.0.1:6175,)"
    R"(10.0.0.2:6176,10.0.0.2:6177,10.0.0.2:6178,10.0.0.2:6179")";
const std::vector<std::string> kTwoHosts = {"10.0.0.1", "10.0.0.2"};

std::vector<Line> lines() {
  return {
      {.name = "000_launch_ps", .flags = "--worker_num 2 --server_num 2"},
      {.name = "002_one_card", .flags = "--gpus=0"},
      {.name = "002_one_visible_card", .flags = "", .cards = "0"},
      {.name = "002_four_cards", .flags = "--gpus=0,1,2,3"},
      {.name = "002_four_visible_cards", .flags = "", .cards = "0,1,2,3"},
      {.name = "002_two_machines_with_cards",
       .flags = R"(--ips="10.0.0.1,10.0.0.2" --gpus=0,1,2,3)",
       .hosts = kTwoHosts},
      {.name = "002_two_machines_with_visible_cards",
       .flags = R"(--ips="10.0.0.1,10.0.0.2")",
       .cards = "0,1,2,3",
       .hosts = kTwoHosts},
      {.name = "002_two_machines", .flags = R"(--ips="10.0.0.1,10.0.0.2")", .hosts = kTwoHosts},
      {.name = "002_servers", .flags = "--server_num=1 --worker_num=4"},
      {.name = "002_servers_of_two_machines",
       .flags = kServers + R"(--workers="10.0.0.1,10.0.0.1,10.0.0.1,10.0.0.1,)"
                           R"(10.0.0.2,10.0.0.2,10.0.0.2,10.0.0.2")",
       .hosts = kTwoHosts},
      {.name = "002_servers_of_two_machines_with_ports",
       .flags = kServers + kEightWorkers,
       .hosts = kTwoHosts},
      {.name = "002_servers_with_cards",
       .flags = "--server_num=2 --worker_num=4",
       .cards = "0,1,2,3"},
      {.name = "002_servers_with_one_card", .flags = "--server_num=2 --worker_num=2", .cards = "0"},
      {.name = "002_servers_and_a_card_on_two_machines",
       .flags = kServers + R"(--workers="10.0.0.1:6172,10.0.0.2:6173")",
       .cards = "0",
       .hosts = kTwoHosts},
      {.name = "002_servers_and_four_cards_on_two_machines",
       .flags = kServers + kEightWorkers,
       .cards = "0,1,2,3",
       .hosts = kTwoHosts},
      {.name = "002_heterogeneous",
       .flags = "--server_num=2 --worker_num=2 --heter_worker_num=2",
       .cards = "0,1"},
      {.name = "003_ctr_app", .flags = "--server_num=1 --worker_num=2", .script = "ctr_app.py"},
      {.name = "004_servers",
       .flags = "--worker_num=1 --server_num=1",
       .script = "tools/static_ps_trainer.py -m models/rank/dnn/config.yaml"},
      {.name = "004_servers_of_two_machines",
       .flags =
           R"(--workers="10.0.0.1:6172,10.0.0.2:6173" --servers="10.0.0.1:6170,10.0.0.2:6171")",
       .hosts = kTwoHosts,
       .script = "tools/static_ps_trainer.py -m models/rank/dnn/config.yaml"},
      {.name = "004_dynamic", .flags = "", .script = "../../../tools/trainer.py -m config.yaml"},
      {.name = "004_static",
       .flags = "",
       .script = "../../../tools/static_trainer.py -m config.yaml"},
      {.name = "004_dynamic_of_two_machines",
       .flags = R"(--ips="10.0.0.1,10.0.0.2" --gpus 0,1,2,3,4,5,6,7)",
       .hosts = kTwoHosts,
       .script = "../../../tools/trainer.py -m config.yaml"},
      {.name = "004_static_of_two_machines",
       .flags = R"(--ips="10.0.0.1,10.0.0.2" --gpus 0,1,2,3,4,5,6,7)",
       .hosts = kTwoHosts,
       .script = "../../../tools/static_trainer.py -m config.yaml"},
  };
}

/// Everyone has a place and finds the others: workers reach every server, ranks reach rank 0, and
/// each over the socket that its peer has inherited.
constexpr const char* kScript = R"(
import os, socket
env = os.environ
def peers(name):
    return [(at.rsplit(":", 1)[0], int(at.rsplit(":", 1)[1])) for at in env[name].split(",") if at]
def answer(times):
    listening = socket.socket(fileno=int(env["ARGOSY_LISTEN_FD"]))
    for _ in range(times):
        listening.accept()[0].sendall(b"here")
def ask(at):
    assert socket.create_connection(at, 60).recv(4) == b"here"
role, workers = env.get("TRAINING_ROLE", "RANK"), peers("PADDLE_TRAINER_ENDPOINTS")
assert len(workers) == int(env["PADDLE_TRAINERS_NUM"])
if role == "RANK":
    assert peers("PADDLE_CURRENT_ENDPOINT") == [workers[int(env["PADDLE_TRAINER_ID"])]]
    if env["PADDLE_TRAINER_ID"] == "0": answer(len(workers) - 1)
    else: ask(workers[0])
elif role == "TRAINER":
    for at in peers("PADDLE_PSERVERS_IP_PORT_LIST") + peers("PADDLE_HETER_TRAINER_IP_PORT_LIST"): ask(at)
else:
    answer(len(workers))
print(role, env.get("FLAGS_selected_gpus"), env.get("CUDA_VISIBLE_DEVICES"))
)";

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

/// Of processes of one kind, what differs from the one before; programs without their folders.
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

class LaunchLines : public testing::TestWithParam<Line> {
 protected:
  LaunchLines() {
    for (const char* script : {"train.py", "ctr_app.py"}) folder_.write(script, kScript);
  }
  Outcome fleetrun(const std::string& host, const std::string& more) const {
    const Line& line = GetParam();
    return shell("cd '" + folder_.path() + "' && unset CUDA_VISIBLE_DEVICES POD_IP && " +
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

std::vector<Line> local_lines() {
  std::vector<Line> all = lines();
  std::erase_if(all, [](const Line& line) {
    return !line.hosts.empty() || line.script.find("tools/") != std::string::npos;
  });
  return all;
}

TEST_P(LocalLines, Runs) {
  const Outcome outcome = fleetrun("", "--log_level=WARNING --log-all");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

const auto kName = [](const auto& line) { return line.param.name; };
INSTANTIATE_TEST_SUITE_P(Seeds, LaunchLines, testing::ValuesIn(lines()), kName);
INSTANTIATE_TEST_SUITE_P(Seeds, LocalLines, testing::ValuesIn(local_lines()), kName);

/// The lines of the models' document train for real, on a copy of a model with little data.
class ToolsTrain : public testing::Test {
 protected:
  /// A folder with models/rank/MODEL in it.
  void copy(const std::string& model) const {
    const fs::path from = fs::path(ARGOSY_SOURCE_DIR) / "models/rank" / model,
                   to = fs::path(folder_.path()) / "models/rank" / model;
    fs::create_directories(to);
    for (const auto& entry : fs::directory_iterator(from))
      if (entry.is_regular_file()) fs::copy(entry.path(), to);
    std::ifstream in(to / "config.yaml");
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const size_t rows = text.find("rows=300000");
    ASSERT_NE(rows, std::string::npos);
    text.replace(rows, std::string("rows=300000").size(), "rows=4000");
    std::ofstream(to / "config.yaml") << text;
  }
  Outcome run(const std::string& from, const std::string& line) const {
    return shell("cd '" + folder_.path() + "/" + from + "' && unset CUDA_VISIBLE_DEVICES && '" +
                 ARGOSY_BIN_DIR + "'/fleetrun " + line);
  }
  const argosy::TestFolder folder_;
};

TEST_F(ToolsTrain, WithServers) {
  copy("dnn");
  const Outcome outcome = run(
      "",
      "--worker_num=1 --server_num=1 tools/static_ps_trainer.py -m models/rank/dnn/config.yaml");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("test AUC"), std::string::npos) << outcome.output;
}

TEST_F(ToolsTrain, OnOneMachineWithoutCards) {
  copy("wide_deep");
  for (const char* tool : {"trainer.py", "static_trainer.py"}) {
    const Outcome outcome =
        run("models/rank/wide_deep", "../../../tools/" + std::string(tool) + " -m config.yaml");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("epoch: 0 done"), std::string::npos) << outcome.output;
  }
}

}  // namespace

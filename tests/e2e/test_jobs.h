#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tests/e2e/loopback.h"
#include "tests/e2e/quick_folder.h"
#include "tests/e2e/small_job.h"

/// Jobs of real processes on generated click logs, for the tests that start, kill and restart them.
namespace argosy::e2e {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Variables = std::map<std::string, std::string>;

inline constexpr auto kPatience = 90s;  // for what takes a second or two
inline constexpr int kRows = 16000;     // in four files
inline constexpr double kNear = 0.03;   // of an AUC; modes and runs differ by less than 0.01

inline std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The first group of each match.
inline std::vector<std::string> all_matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

inline size_t lines_in(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// A program of build/bin that runs in a folder and writes stdout and stderr to files there. It is
/// killed with this.
class Process {
 public:
  Process(const fs::path& folder, const std::string& name, const std::string& command,
          const Variables& variables = {}, int inherited = -1)
      : output_(folder / (name + ".out")), errors_(folder / (name + ".err")) {
    const std::string line = "cd '" + folder.string() + "' && exec '" ARGOSY_BIN_DIR "'/" +
                             command + " >" + name + ".out 2>" + name + ".err";
    pid_ = ::fork();
    if (pid_ != 0) return;
    for (const char* stale : {"TRAINING_ROLE", "PADDLE_PSERVERS_IP_PORT_LIST"}) ::unsetenv(stale);
    for (const auto& [key, value] : variables) ::setenv(key.c_str(), value.c_str(), 1);
    if (inherited >= 0) ::dup2(inherited, kListenFd);
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  ~Process() {
    if (pid_ > 0) kill();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  static constexpr int kListenFd = 9;

  void kill() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
  }
  /// The exit code; -1: a signal ended it, or it took too long.
  int wait(std::chrono::seconds patience = kPatience) {
    int status = 0;
    const auto deadline = Clock::now() + patience;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (Clock::now() > deadline) {
        kill();
        ADD_FAILURE() << "it took too long: " << output() << errors();
        return -1;
      }
      std::this_thread::sleep_for(5ms);
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  bool says(const std::string& words) const {
    const auto deadline = Clock::now() + kPatience;
    while (output().find(words) == std::string::npos && Clock::now() < deadline)
      std::this_thread::sleep_for(5ms);
    return output().find(words) != std::string::npos;
  }
  pid_t pid() const { return pid_; }
  std::string output() const { return content(output_); }
  std::string errors() const { return content(errors_); }

 private:
  fs::path output_, errors_;
  pid_t pid_;
};

inline const std::string kConfig = small_job(kRows, 4, R"(  test_data_dir: test
  epochs: 3
  print_interval: 10
  use_auc: True
  audit: True
)");

struct Outcome {
  int exit_code;
  std::string output, errors;
};

/// A folder with a configuration, in which jobs run.
class PsJob : public testing::Test {
 protected:
  PsJob() : folder_(quick_folder()) { write("config.yaml", kConfig); }
  ~PsJob() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  Outcome run(const std::string& command, const Variables& variables = {}) const {
    Process process(folder_, "run", command, variables);
    const int code = process.wait();
    return {code, process.output(), process.errors()};
  }
  static std::string train(const std::string& settings) {
    return "argosy train -m config.yaml -o " + settings;
  }
  /// All logs are fresh.
  Outcome launch(int servers, int workers, const std::string& settings) const {
    return run("fleetrun --server_num=" + std::to_string(servers) +
               " --worker_num=" + std::to_string(workers) + " '" ARGOSY_BIN_DIR "/argosy' train " +
               "-m config.yaml -o " + settings);
  }
  std::string log(const std::string& name) const { return content(folder_ / "log" / name); }
  /// The test AUC of the last epoch of a save, as `argosy infer` finds it.
  double inferred(const std::string& settings) const {
    const Outcome outcome = run("argosy infer -m config.yaml -o " + settings);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    const auto found = all_matches(outcome.output, "done, loss: [0-9.]+, auc: ([0-9.]+)");
    return found.empty() ? 0 : std::stod(found.back());
  }
  /// That were trained, by epoch, over all workers.
  std::vector<int> instances(int workers) const {
    std::vector<int> sums;
    for (int i = 0; i < workers; ++i) {
      const auto found =
          all_matches(log("workerlog." + std::to_string(i)), "audit: ([0-9]+) instances of");
      sums.resize(std::max(sums.size(), found.size()));
      for (size_t epoch = 0; epoch < found.size(); ++epoch) sums[epoch] += std::stoi(found[epoch]);
    }
    return sums;
  }
  double local_auc() const {
    const Outcome outcome = run(train("runner.model_save_path=alone"));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return inferred("runner.model_save_path=alone");
  }

  const fs::path folder_;
};

/// Servers and workers without a launcher. The servers' sockets listen before they start, and stay
/// here for those that are started again.
class PlainJob {
 public:
  PlainJob(const fs::path& folder, int workers, int servers = 1, int away = 0)
      : folder_(folder), workers_(workers), away_(away) {
    sockets_.resize(static_cast<size_t>(servers));
  }

  /// The job's id, for processes started from now on; "": the default.
  std::string id = {};

  std::string address(size_t server = 0) const { return sockets_[server].address(); }
  /// From now on they are the servers' alone.
  void close_sockets() {
    for (Loopback& socket : sockets_) socket.close();
  }
  /// `restarts`: how often it was started before.
  std::unique_ptr<Process> server(const std::string& command, size_t index = 0, int restarts = 0) {
    Variables variables = shared(restarts);
    variables["TRAINING_ROLE"] = "PSERVER";
    variables["POD_IP"] = "127.0.0.1";
    variables["PADDLE_PORT"] = sockets_[index].port();
    variables["ARGOSY_LISTEN_FD"] = std::to_string(Process::kListenFd);
    return std::make_unique<Process>(folder_, name("server", index, restarts), command, variables,
                                     sockets_[index].fd());
  }
  std::unique_ptr<Process> worker(int index, const std::string& command, int restarts = 0) const {
    Variables variables = shared(restarts);
    variables["TRAINING_ROLE"] = "TRAINER";
    variables["PADDLE_TRAINER_ID"] = std::to_string(index);
    return std::make_unique<Process>(folder_, name("worker", static_cast<size_t>(index), restarts),
                                     command, variables);
  }

 private:
  static std::string name(const std::string& kind, size_t index, int restarts) {
    return kind + std::to_string(index) +
           (restarts == 0 ? "" : ".restart" + std::to_string(restarts));
  }
  Variables shared(int restarts) const {
    std::string servers;
    for (size_t i = 0; i < sockets_.size(); ++i) servers += (i == 0 ? "" : ",") + address(i);
    Variables variables{{"PADDLE_PSERVERS_IP_PORT_LIST", servers},
                        {"PADDLE_TRAINERS_NUM", std::to_string(workers_)},
                        {"ARGOSY_AWAY", std::to_string(away_)},
                        {"ARGOSY_QUIET", "3"}};
    if (restarts > 0) variables["ARGOSY_RESTART"] = std::to_string(restarts);
    if (!id.empty()) variables["PADDLE_JOB_ID"] = id;
    return variables;
  }

  fs::path folder_;
  int workers_, away_;
  std::vector<Loopback> sockets_;
};

}  // namespace argosy::e2e

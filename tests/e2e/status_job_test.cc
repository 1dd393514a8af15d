// `argosy status` on real jobs: this program plays the launcher of servers and workers that are
// started by environment variables, and stops one of them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <thread>

#include "argosy/base/test_support.h"
#include "argosy/launch/status.h"
#include "tests/e2e/loopback.h"

namespace {

using namespace std::chrono_literals;
using argosy::launch::StatusBoard;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Variables = std::map<std::string, std::string>;

constexpr auto kPatience = 90s;  // for what takes a second or two
constexpr int kListenFd = 8, kProgressFd = 9;

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A process of the job. It is killed with this.
class Process {
 public:
  Process(const fs::path& folder, const std::string& name, const std::string& command,
          const Variables& variables, int listening, int progress)
      : pid_(::fork()) {
    if (pid_ != 0) return;
    for (const auto& [key, value] : variables) ::setenv(key.c_str(), value.c_str(), 1);
    if (listening >= 0) ::dup2(listening, kListenFd);
    if (progress >= 0) ::dup2(progress, kProgressFd);
    const std::string line = "cd '" + folder.string() + "' && exec '" ARGOSY_BIN_DIR "'/" +
                             command + " >" + name + ".out 2>" + name + ".err";
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

constexpr const char* kConfig = R"(model: dnn
runner:
  train_data_dir: train
  generate: 'criteo(rows=4000, vocab=50, files=2, seed=3)'
  reader: criteo
  train_batch_size: 50
  epochs: 1000000
  print_interval: 1000
  split_file_list: True
  sync_mode: sync
hyper_parameters:
  optimizer: {class: Adam, learning_rate: 0.005}
  sparse_feature_number: 100001
  sparse_feature_dim: 4
  fc_sizes: [16, 8]
)";

class StatusJob : public testing::Test {
 protected:
  StatusJob() : board_(log_dir(), "here") {
    fs::create_directories(log_dir());
    files_.write("config.yaml", kConfig);
    EXPECT_EQ(::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK), 0);
  }
  ~StatusJob() override {
    for (const int end : pipe_) ::close(end);
  }

  std::string log_dir() const { return files_.path() + "/log"; }

  std::string said(const std::string& file) const { return content(files_.path() + "/" + file); }

  /// One server and two workers.
  void start(const std::string& settings = "") {
    command_ = "argosy train -m config.yaml " + settings;
    const argosy::e2e::Loopback socket;
    const Variables shared = {{"PADDLE_PSERVERS_IP_PORT_LIST", socket.address()},
                              {"PADDLE_TRAINERS_NUM", "2"},
                              {"ARGOSY_PROGRESS_FD", std::to_string(kProgressFd)}};
    Variables server = shared;
    server["TRAINING_ROLE"] = "PSERVER";
    server["POD_IP"] = "127.0.0.1";
    server["PADDLE_PORT"] = socket.port();
    server["ARGOSY_LISTEN_FD"] = std::to_string(kListenFd);
    begin("server 0", server, socket.fd());
    for (const char* index : {"0", "1"}) {
      Variables worker = shared;
      worker["TRAINING_ROLE"] = "TRAINER";
      worker["PADDLE_TRAINER_ID"] = index;
      begin(std::string("worker ") + index, worker, -1);
    }
  }

  /// Two ranks.
  void start_ranks() {
    command_ = "argosy train -m config.yaml";
    const std::array<argosy::e2e::Loopback, 2> sockets;
    for (size_t rank = 0; rank < sockets.size(); ++rank) {
      const Variables variables = {
          {"PADDLE_TRAINER_ENDPOINTS", sockets[0].address() + "," + sockets[1].address()},
          {"PADDLE_CURRENT_ENDPOINT", sockets[rank].address()},
          {"PADDLE_TRAINERS_NUM", "2"},
          {"PADDLE_TRAINER_ID", std::to_string(rank)},
          {"ARGOSY_LISTEN_FD", std::to_string(kListenFd)},
          {"ARGOSY_PROGRESS_FD", std::to_string(kProgressFd)}};
      begin("worker " + std::to_string(rank), variables, sockets[rank].fd());
    }
  }

  /// One round of a launcher's loop.
  void look_after() {
    std::array<char, 4096> block;
    for (ssize_t n = 0; (n = ::read(pipe_[0], block.data(), block.size())) > 0;)
      unread_.append(block.data(), static_cast<size_t>(n));
    for (size_t end = 0; (end = unread_.find('\n')) != std::string::npos;) {
      board_.take(std::string_view(unread_).substr(0, end), Clock::now());
      unread_.erase(0, end + 1);
    }
    EXPECT_EQ(board_.write_if_due(Clock::now()), std::nullopt);
  }

  struct Outcome {
    int exit_code;
    std::string output, errors;
  };
  Outcome status(const std::string& flags = "") const {
    Process process(files_.path(), "status", "argosy status " + flags, {}, -1, -1);
    const int code = process.wait();
    return {code, content(files_.path() + "/status.out"), content(files_.path() + "/status.err")};
  }
  /// Looks after the job until `argosy status` prints something like this.
  testing::AssertionResult shows(const std::string& pattern, const std::string& flags = "") {
    const std::regex regex(pattern);
    const auto deadline = Clock::now() + kPatience;
    Outcome outcome;
    while (Clock::now() < deadline) {
      look_after();
      outcome = status(flags);
      if (std::regex_search(outcome.output, regex)) return testing::AssertionSuccess();
      std::this_thread::sleep_for(50ms);
    }
    return testing::AssertionFailure() << "no " << pattern << " in\n"
                                       << outcome.output << outcome.errors;
  }
  pid_t pid(const std::string& name) { return processes_.at(name)->pid(); }
  void end(const std::string& name) {
    processes_.erase(name);
    board_.ended(name, "killed", Clock::now());
  }

  const argosy::TestFolder files_;
  StatusBoard board_;

 private:
  void begin(const std::string& name, const Variables& variables, int listening) {
    std::string file = name;
    file.erase(file.find(' '), 1);
    processes_[name] =
        std::make_unique<Process>(files_.path(), file, command_, variables, listening, pipe_[1]);
    board_.started(name, pid(name), Clock::now());
  }

  std::array<int, 2> pipe_{-1, -1};
  std::string unread_, command_;
  std::map<std::string, std::unique_ptr<Process>> processes_;
};

TEST_F(StatusJob, NamesTheChainOfWaitsThatEndsAtAStoppedWorker) {
  start();
  ASSERT_TRUE(shows("worker 1 +[0-9]+ .*[1-9][0-9]* of epoch [1-9]")) << said("worker1.err");
  EXPECT_TRUE(shows("server 0 +[0-9]+ .* serves, [1-9][0-9]* rows"));
  EXPECT_TRUE(shows("worker 0 +[0-9]+ .* of epoch [1-9][0-9]* +[1-9][0-9]*"));
  EXPECT_TRUE(shows("\"name\": \"worker 0\", .*\"doing\": \"[a-z]+\"", "--json"));
  ASSERT_EQ(::kill(pid("worker 1"), SIGSTOP), 0);
  EXPECT_TRUE(
      shows("worker 0 waits [0-9.]+ s for server 0 \\([^;]+\\); server 0 waits [0-9.]+ s for "
            "worker 1 \\([^;]+\\); worker 1 is stopped: kill -CONT [0-9]+ lets it go on"));
}

TEST_F(StatusJob, NamesTheWorkerThatReadsDataForTooLong) {
  // The data of worker 1 stop in the middle, as long as the folder is there.
  start(
      "-o 'runner.pipe_command=if [ $PADDLE_TRAINER_ID = 1 ]; then head -n 500; "
      "while [ -e config.yaml ]; do sleep 0.05; done; fi; cat'");
  EXPECT_TRUE(
      shows("worker 0 waits [0-9.]+ s for server 0 \\(exchange [0-9]+: rows of [^;]+ and "
            "parameters\\); server 0 waits [0-9.]+ s for worker 1 \\(step [0-9]+\\); worker 1 "
            "reads data for [0-9.]+ s \\([^ ]+part-1 through 'if .*' gives nothing; it is process "
            "[0-9]+\\)"))
      << said("worker1.err");
}

TEST_F(StatusJob, ShowsRanksAndNamesTheOneThatTheOthersWaitFor) {
  start_ranks();
  ASSERT_TRUE(shows("worker 1 +[0-9]+ .*[1-9][0-9]* of epoch [1-9][0-9]* +[1-9][0-9]*"))
      << said("worker1.err");
  ASSERT_EQ(::kill(pid("worker 1"), SIGSTOP), 0);
  EXPECT_TRUE(
      shows("worker 0 waits [0-9.]+ s for worker 1 \\((to end step [0-9]+|to meet)\\); worker 1 is "
            "stopped: kill -CONT [0-9]+ lets it go on"));
}

TEST_F(StatusJob, NamesTheServerThatIsDead) {
  start();
  ASSERT_TRUE(shows("worker 1 +[0-9]+ .*[1-9][0-9]* of epoch [1-9]")) << said("worker1.err");
  end("server 0");
  EXPECT_TRUE(
      shows("worker [01] waits [0-9.]+ s for server 0 \\(it is lost: [^;]+\\); server 0 has "
            "ended: killed"))
      << said("worker0.err");
}

TEST_F(StatusJob, SaysWhatWasExpectedWhereThereIsNoJob) {
  const Outcome none = status("--log_dir nowhere");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.errors,
            "argosy: cannot read the folder nowhere: No such file or directory; expected the "
            "--log_dir of a fleetrun\n");
  const Outcome empty = status();
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_EQ(empty.errors,
            "argosy: log has no status.HOST: expected one that fleetrun with --log_dir log "
            "writes\n");
}

TEST_F(StatusJob, SaysThatALauncherIsGoneAndThatAJobHasEnded) {
  const double now = argosy::launch::unix_now();
  argosy::launch::StatusFile file{
      .host = "host-a", .pid = 1234, .started = now - 60, .written = now - 12};
  files_.write("log/status.host-a", argosy::launch::format_status_file(file));
  const Outcome old = status();
  EXPECT_EQ(old.exit_code, 1);
  EXPECT_NE(old.output.find("the launcher 1234 on host-a has not written for 1"), std::string::npos)
      << old.output;
  file.finished = true;
  files_.write("log/status.host-a", argosy::launch::format_status_file(file));
  const Outcome ended = status("--watch");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_NE(ended.output.find("the job has ended"), std::string::npos) << ended.output;
}

}  // namespace

// The examples of servers and workers as a user runs them: whole programs, under fleetrun and by
// hand with variables in the environment.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>

#include "argosy/base/test_support.h"

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Outcome {
  int exit_code;  // -1: a signal ended it
  std::string output;
};

/// A program of build/bin that runs in `folder`, with its output in memory. The destructor kills
/// it.
class Program {
 public:
  Program(const fs::path& folder, const std::string& variables, const std::string& command) {
    fs::create_directories(folder);
    // Hide the test's own role variables from its programs.
    const std::string line = "cd '" + folder.string() +
                             "' && unset PADDLE_PSERVERS_IP_PORT_LIST PADDLE_PSERVERS "
                             "PADDLE_PSERVER_IPS PADDLE_INIT_PSERVERS TRAINING_ROLE POD_IP && exec "
                             "env " +
                             variables + " '" ARGOSY_BIN_DIR "'/" + command;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(output_, STDOUT_FILENO);
      ::dup2(output_, STDERR_FILENO);
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~Program() {
    if (pid_ > 0) kill_and_wait();
    ::close(output_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::string text() const {
    std::string all;
    std::array<char, 512> block;
    for (ssize_t n = 0; (n = ::pread(output_, block.data(), block.size(), std::ssize(all))) > 0;)
      all.append(block.data(), static_cast<size_t>(n));
    return all;
  }
  Outcome wait(Clock::time_point deadline) {
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (Clock::now() > deadline) {
        kill_and_wait();
        return {-1, text() + "was killed: it took too long\n"};
      }
      std::this_thread::sleep_for(5ms);
    }
    pid_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text()};
  }

 private:
  void kill_and_wait() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  int output_ = ::memfd_create("output", MFD_CLOEXEC);
  pid_t pid_;
};

/// A port that was free a moment ago.
uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

/// The number after the last occurrence of `label`, or -1.
double number_after(const std::string& output, const std::string& label) {
  const auto at = output.rfind(label);
  return at == std::string::npos ? -1 : std::stod(output.substr(at + label.size()));
}

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class PsExamples : public testing::Test {
 protected:
  Outcome run(const std::string& command) const {
    return Program(folder(), "", command).wait(Clock::now() + 90s);
  }
  fs::path folder() const { return folder_.path(); }

  argosy::TestFolder folder_;
};

class CtrPs : public PsExamples, public testing::WithParamInterface<const char*> {};

TEST_P(CtrPs, LearnsWithTwoServersAndTwoWorkersAndSaves) {
  const std::string flags = " --rows 8000 --layer 32 --mode " + std::string(GetParam());
  const Outcome job =
      run("fleetrun --server_num=2 --worker_num=2 '" ARGOSY_BIN_DIR "'/ctr_ps" + flags);
  EXPECT_EQ(job.exit_code, 0) << job.output;
  // The epoch's AUC: progress lines show that of batches.
  EXPECT_GT(number_after(content(folder() / "log/workerlog.0"), "auc "), 0.58) << job.output;
  EXPECT_NE(job.output.find("8000 instances"), std::string::npos) << job.output;
  EXPECT_TRUE(fs::exists(folder() / "ctr_ps.model/persistables.argosy"));
  for (const char* log : {"log/serverlog.0", "log/serverlog.1"}) {
    const std::string text = content(folder() / log);
    EXPECT_NE(text.find("Server listening on 127.0.0.1:"), std::string::npos) << text;
    EXPECT_NE(text.find("worker 0 has left"), std::string::npos) << text;
    EXPECT_NE(text.find("worker 1 has left"), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, CtrPs, testing::Values("async", "sync"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(PsExamples, CtrPsTrainsAloneWhereTheEnvironmentSaysNothing) {
  const Outcome alone = run("ctr_ps --rows 8000 --layer 32");
  EXPECT_EQ(alone.exit_code, 0) << alone.output;
  EXPECT_GT(number_after(alone.output, "auc "), 0.58) << alone.output;
}

TEST_F(PsExamples, FitALineByHandEndsWhenItsTrainersExitInTheLoop) {
  const std::string common = "PADDLE_PSERVER_IPS=127.0.0.1 PADDLE_TRAINERS=2 PADDLE_PSERVER_PORT=" +
                             std::to_string(free_port());
  const auto deadline = Clock::now() + 30s;
  Program server(folder() / "server",
                 common +
                     " PADDLE_TRAINING_ROLE=PSERVER PADDLE_CURRENT_IP=127.0.0.1 "
                     "PADDLE_TRAINER_ID=1",
                 "fit_a_line");
  const std::string trainer = common + " PADDLE_TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=";
  Program first(folder() / "first", trainer + "0", "fit_a_line");
  Program second(folder() / "second", trainer + "1", "fit_a_line");
  for (Program* program : {&first, &second}) {
    const Outcome outcome = program->wait(deadline);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("under 10, the line fits"), std::string::npos) << outcome.output;
  }
  const Outcome served = server.wait(deadline);
  EXPECT_EQ(served.exit_code, 0) << served.output;
  EXPECT_NE(served.output.find("Server listening on 127.0.0.1:"), std::string::npos)
      << served.output;
}

TEST_F(PsExamples, GeoWord2vecComesWithinATenthOfOneProcess) {
  const std::string command = "geo_word2vec --words 30000 --epochs 4";
  const Outcome alone = run(command);
  EXPECT_EQ(alone.exit_code, 0) << alone.output;
  const Outcome job = run("fleetrun --server_num=2 --worker_num=2 '" ARGOSY_BIN_DIR "'/" + command);
  EXPECT_EQ(job.exit_code, 0) << job.output;
  const double expected = number_after(alone.output, "test loss ");
  EXPECT_TRUE(expected > 0 && expected < 0.6) << alone.output;
  EXPECT_NEAR(number_after(job.output, "test loss "), expected, 0.1 * expected) << job.output;
}

}  // namespace

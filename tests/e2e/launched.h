#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "argosy/world/test_processes.h"

/// Shared by tests that run fleetrun itself.
namespace argosy::launched {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{60};  // for what should take a second or two

using argosy::await;
using argosy::Found;
using argosy::processes_with;

inline std::string content(const std::filesystem::path& path) { return content_of(path); }

inline std::string marked(const std::string& marker) { return "ARGOSY_E2E=" + marker; }

/// The names of what still runs of the launches with this marker. Guards have a moment to see the
/// end of what they guard.
inline std::string left_running(const std::string& marker) {
  for (const auto until = Clock::now() + std::chrono::seconds(10);;
       std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
    const auto found = processes_with({marked(marker)});
    std::string names;
    for (const Found& process : found) names += process.command + " ";
    const bool guards = !found.empty() && std::ranges::all_of(found, [](const Found& process) {
      return process.command.starts_with("argosy-guard");
    });
    if (!guards || Clock::now() > until) return names;
  }
}

/// A file in memory, without a name.
struct Scratch {
  int fd = ::memfd_create("output", MFD_CLOEXEC);
  ~Scratch() { ::close(fd); }
  std::string text() const {
    std::string all;
    std::array<char, 4096> block;
    for (ssize_t n = 0; (n = ::pread(fd, block.data(), block.size(), std::ssize(all))) > 0;)
      all.append(block.data(), static_cast<size_t>(n));
    return all;
  }
};

struct Outcome {
  int exit_code;  // -1: a signal ended it
  std::string output, errors;
  int signal = 0;  // that ended it
};

/// A fleetrun that runs in `folder`. The destructor kills it.
class Launch {
 public:
  /// `marker` is a variable in the environment of all that it starts; `before` comes before the
  /// program on the shell's line, after `exec`.
  Launch(const std::filesystem::path& folder, const std::string& marker,
         const std::string& arguments, const std::string& before = "") {
    const std::string line = "cd '" + folder.string() + "' && export " + marked(marker) +
                             " PADDLE_LOG_LEVEL=WARNING && exec " + before +
                             " '" ARGOSY_BIN_DIR "'/fleetrun " + arguments;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(output_.fd, STDOUT_FILENO);
      ::dup2(errors_.fd, STDERR_FILENO);
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~Launch() {
    if (pid_ > 0) kill_and_wait();
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  std::string output() const { return output_.text(); }
  std::string errors() const { return errors_.text(); }

  Outcome wait(std::chrono::milliseconds patience = kPatience) {
    int status = 0;
    const auto deadline = Clock::now() + patience;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (Clock::now() > deadline) {
        kill_and_wait();
        return {-1, output_.text(), errors_.text() + "was killed: it took too long\n"};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    pid_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output_.text(), errors_.text(),
            WIFSIGNALED(status) ? WTERMSIG(status) : 0};
  }

 private:
  void kill_and_wait() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  Scratch output_, errors_;
  pid_t pid_;
};

using Launches = std::vector<std::unique_ptr<Launch>>;

inline std::vector<Outcome> wait_all(Launches& launches,
                                     std::chrono::milliseconds patience = kPatience) {
  std::vector<Outcome> outcomes;
  const auto deadline = Clock::now() + patience;
  for (auto& launch : launches) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    outcomes.push_back(launch->wait(std::max(std::chrono::milliseconds(1), left)));
  }
  return outcomes;
}

}  // namespace argosy::launched

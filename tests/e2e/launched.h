#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "argosy/base/proc_files.h"

/// What tests that run fleetrun itself share.
namespace argosy::launched {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{60};  // for what should take a second or two

inline std::string content(const std::filesystem::path& path) { return content_of(path); }

inline void await(const std::function<bool()>& condition, const std::string& what) {
  const auto deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > deadline) throw std::runtime_error("waited too long for " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// A process of a launch, found by the variables in its environment.
struct Found {
  pid_t pid;
  std::string command;  // as /proc has it: the first 15 characters of the program's name
};

/// Those that live and have all of these "NAME=VALUE"; those that only wait to be reaped have none.
inline std::vector<Found> processes_with(const std::vector<std::string>& variables) {
  std::vector<Found> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string environment = '\0' + content(entry.path() / "environ");
    bool all = true;
    for (const std::string& variable : variables)
      all = all && environment.find('\0' + variable + '\0') != std::string::npos;
    if (!all) continue;
    std::string command = content(entry.path() / "comm");
    if (!command.empty()) command.pop_back();
    found.push_back({std::stoi(name), std::move(command)});
  }
  return found;
}

inline std::string marked(const std::string& marker) { return "ARGOSY_E2E=" + marker; }

/// The names of what still runs of the launches with this marker.
inline std::string left_running(const std::string& marker) {
  std::string names;
  for (const Found& process : processes_with({marked(marker)})) names += process.command + " ";
  return names;
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

/// A fleetrun that runs in a folder of its own. It is killed with this.
class Launch {
 public:
  /// `marker` is a variable in the environment of all that it starts; `before` stands before the
  /// program on the line of a shell, after `exec`.
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

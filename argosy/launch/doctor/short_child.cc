#include "argosy/launch/doctor/short_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "argosy/base/descriptor.h"
#include "argosy/base/error.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Until the pipe is closed by all who hold it, or the deadline.
std::string read_until(const Descriptor& pipe, Deadline deadline) {
  std::string text;
  std::array<char, 4096> block;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left <= 0ms) return text;
    pollfd ready{pipe.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t n = ::read(pipe.get(), block.data(), block.size());
    if (n == 0 || (n < 0 && errno != EINTR)) return text;
    text.append(block.data(), static_cast<size_t>(std::max<ssize_t>(n, 0)));
  }
}

/// A child that has closed its pipe is about to end; it is looked after often.
std::optional<int> wait_until(pid_t child, Deadline deadline) {
  constexpr auto kPause = 200us;
  while (true) {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
    const bool ended = info.si_pid != 0;
    if (!ended && Clock::now() < deadline) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    ::kill(-child, SIGKILL);  // the rest of its group, while its number is still its own
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return ended ? std::optional(status) : std::nullopt;
  }
}

void become_child(pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

}  // namespace

ShortChild run_in_child(FunctionRef<void(int pipe)> body, Deadline deadline) {
  std::array<int, 2> ends{};
  check<IoError>(::pipe2(ends.data(), O_CLOEXEC) == 0,
                 "no pipe for a process: ", std::strerror(errno));
  const Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  std::fflush(nullptr);  // what waits there is not the child's to write
  const pid_t parent = ::getpid(), child = ::fork();
  check<IoError>(child >= 0, "cannot start a process: ", std::strerror(errno));
  if (child == 0) {
    become_child(parent);
    body(theirs.get());
    ::_exit(0);
  }
  ::setpgid(child, child);  // whoever comes first
  theirs.reset();
  ShortChild result;
  result.output = read_until(ours, deadline);
  result.status = wait_until(child, deadline);
  return result;
}

ShortChild run_command(const std::vector<std::string>& command, Deadline deadline) {
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const Descriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const auto exec = [&](int pipe) {
    ::dup2(nowhere.get(), STDIN_FILENO);
    ::dup2(nowhere.get(), STDOUT_FILENO);
    ::dup2(pipe, STDERR_FILENO);
    ::execvp(argv[0], argv.data());
    constexpr int kNotFound = 127;
    ::_exit(kNotFound);
  };
  return run_in_child(exec, deadline);
}

}  // namespace argosy

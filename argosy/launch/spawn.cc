#include "argosy/launch/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "argosy/base/child.h"
#include "argosy/base/error.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;
constexpr auto kKilled = 1000ms;  // the longest that a killed process should take to be gone
constexpr int kCannotRun = 126, kNotFound = 127;  // as shells have it

/// Above those that the child sets, so that no dup2 overwrites what another one needs.
Descriptor above_inherited(int fd) {
  Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, kProgressFd + 1));
  check<IoError>(copy.get() >= 0, "no file descriptor for a process: ", std::strerror(errno));
  return copy;
}

Descriptor open_above(const std::string& path, int flags) {
  constexpr mode_t kMode = 0644;
  const Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, kMode));
  check<IoError>(file.get() >= 0, "cannot open ", path, ": ", std::strerror(errno));
  return above_inherited(file.get());
}

std::vector<std::string> environment_of(const Process& process, const std::string& mark) {
  std::vector<std::string> entries = {mark};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('='));
    const bool unset = std::ranges::find(process.unset, name) != process.unset.end();
    if (!unset && !process.env.contains(name)) entries.push_back(text);
  }
  for (const auto& [name, value] : process.env)
    entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

struct Start {
  char* const* argv;
  char* const* env;
  int input, log, listening, progress;
  pid_t parent;
};

/// Runs in the child: system calls only.
[[noreturn]] void become(const Start& start) {
  if (!join_new_group(start.parent)) _exit(kCannotRun);
  ::dup2(start.input, STDIN_FILENO);
  ::dup2(start.log, STDOUT_FILENO);
  ::dup2(start.log, STDERR_FILENO);
  if (start.listening >= 0)
    ::dup2(start.listening, kListenFd);
  else
    ::close(kListenFd);
  ::dup2(start.progress, kProgressFd);
  ::close_range(kProgressFd + 1, UINT_MAX, 0);
  restore_signals();
  ::execvpe(start.argv[0], start.argv, start.env);
  const int error = errno;
  for (const char* part : {"fleetrun: cannot run ", static_cast<const char*>(start.argv[0]), ": ",
                           ::strerrordesc_np(error), "\n"}) {
    const ssize_t ignored = ::write(STDERR_FILENO, part, std::strlen(part));
    static_cast<void>(ignored);
  }
  _exit(error == ENOENT ? kNotFound : kCannotRun);
}

/// The rest of a group that has been killed: its parents are gone, so it is ours.
void reap_group(pid_t group) {
  const auto deadline = std::chrono::steady_clock::now() + kKilled;
  while (std::chrono::steady_clock::now() < deadline) {
    const pid_t found = ::waitpid(-group, nullptr, WNOHANG);
    if (found < 0 && errno == ECHILD) return;
    if (found == 0) std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

bool Ending::by_signal() const { return WIFSIGNALED(status); }

int Ending::exit_code() const {
  constexpr int kSignalled = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

std::string Ending::text() const {
  if (WIFEXITED(status)) return "exit status " + std::to_string(WEXITSTATUS(status));
  return "killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
         strsignal(WTERMSIG(status)) + ")";
}

RunningProcess::RunningProcess(const Process& process, const Inheritance& inheritance, Guard& guard)
    : guard_(guard) {
  std::vector<std::string> argv = process.argv, env = environment_of(process, guard.mark());
  const std::vector<char*> argv_pointers = pointers(argv), env_pointers = pointers(env);
  const Descriptor input = open_above("/dev/null", O_RDONLY),
                   log = open_above(process.log_file, O_WRONLY | O_CREAT | O_APPEND |
                                                          (inheritance.goes_on ? 0 : O_TRUNC)),
                   socket = inheritance.listening < 0 ? Descriptor()
                                                      : above_inherited(inheritance.listening),
                   reports = above_inherited(inheritance.progress);
  const Start start{.argv = argv_pointers.data(),
                    .env = env_pointers.data(),
                    .input = input.get(),
                    .log = log.get(),
                    .listening = socket.get(),
                    .progress = reports.get(),
                    .parent = ::getpid()};
  std::fflush(nullptr);  // what waits there is not the child's to write
  pid_ = ::fork();
  if (pid_ == 0) become(start);
  check<IoError>(pid_ > 0, "cannot start ", process.name(), ": ", std::strerror(errno));
  ::setpgid(pid_, pid_);  // whoever comes first
  guard_.watch(pid_);
}

RunningProcess::~RunningProcess() {
  if (ending_) return;
  signal(SIGKILL);
  wait();
}

std::optional<Ending> RunningProcess::ended() {
  if (ending_) return ending_;
  siginfo_t info{};
  const int found = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (found == 0 && info.si_pid == 0) return std::nullopt;
  signal(SIGKILL);  // what it left in its group, while its number is still its own
  wait();
  return ending_;
}

void RunningProcess::signal(int number) {
  if (ending_) return;
  ::kill(-pid_, number);
}

void RunningProcess::wait() {
  guard_.forget(pid_);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno == EINTR) continue;
    status = W_EXITCODE(kCannotRun, 0);  // somebody else has waited for it
    break;
  }
  ending_ = Ending{status};
  reap_group(pid_);
}

}  // namespace argosy

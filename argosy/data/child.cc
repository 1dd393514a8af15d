#include "argosy/data/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

#include "argosy/base/child.h"
#include "argosy/base/error.h"
#include "argosy/data/byte_stream.h"

namespace argosy {
namespace {

constexpr int kCannotStart = 126;

/// A copy above 2, so that no dup2 of the child overwrites what another one needs.
Descriptor above_standard(int fd) {
  Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  check<IoError>(copy.get() >= 0, "no file descriptor for a child: ", std::strerror(errno));
  return copy;
}

struct Plan {
  std::array<const char*, 4> argv;
  const char* directory;  // null = stay
  int input, output, errors;
  pid_t parent;
};

/// Runs in the child, which shares our memory until exec: system calls only, no allocation.
[[noreturn]] void become(const Plan& plan) {
  const auto give_up = [](const char* what) {
    const ssize_t ignored = ::write(STDERR_FILENO, what, std::strlen(what));
    static_cast<void>(ignored);
    _exit(kCannotStart);
  };
  if (!join_new_group(plan.parent)) _exit(kCannotStart);
  ::dup2(plan.errors, STDERR_FILENO);
  ::dup2(plan.input, STDIN_FILENO);
  ::dup2(plan.output, STDOUT_FILENO);
  ::close_range(STDERR_FILENO + 1, UINT_MAX, 0);
  if (plan.directory != nullptr && ::chdir(plan.directory) != 0)
    give_up("cannot enter the folder of the pipe command\n");
  restore_signals();
  ::execv("/bin/sh", const_cast<char* const*>(plan.argv.data()));
  give_up("cannot run sh\n");
  _exit(kCannotStart);
}

/// vfork, as copying the page tables of a large process would take long. Signals are held back,
/// as a handler must not run in the child while memory is shared.
pid_t start(const Plan& plan) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) become(plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  check<IoError>(pid > 0, "cannot start a child: ", std::strerror(error));
  // The child does it too, but where vfork is a plain fork it may not have come so far yet.
  ::setpgid(pid, pid);
  return pid;
}

}  // namespace

bool ChildEnd::ok() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

std::string ChildEnd::text() const {
  if (WIFEXITED(status)) return "exit status " + std::to_string(WEXITSTATUS(status));
  return "killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
         strsignal(WTERMSIG(status)) + ")";
}

Child::Child(const ChildSetup& setup) {
  const Descriptor input = above_standard(setup.input), output = above_standard(setup.output),
                   errors = above_standard(setup.errors);
  pid_ = start({.argv = {"sh", "-c", setup.command.c_str(), nullptr},
                .directory = setup.directory.empty() ? nullptr : setup.directory.c_str(),
                .input = input.get(),
                .output = output.get(),
                .errors = errors.get(),
                .parent = ::getpid()});
}

Child::~Child() {
  if (end_) return;
  kill();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
}

std::optional<ChildEnd> Child::ended() {
  if (end_) return end_;
  siginfo_t info{};
  const int found = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (found == 0 && info.si_pid == 0) return std::nullopt;
  kill();  // what it left in its group, while its number is still its own
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno == EINTR) continue;
    fail<IoError>("the end of child ", pid_, " is not known: ", std::strerror(errno));
  }
  end_ = ChildEnd{status};
  return end_;
}

void Child::kill() {
  if (end_) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
}

}  // namespace argosy

#include "argosy/world/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/world/vfork.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;
constexpr auto kKilled = 1000ms;  // the longest that a killed process should take to be gone
constexpr int kCannotRun = 126, kNotFound = 127;  // as shells have it

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// Everything a child needs for exec, prepared before the fork.
struct Start {
  char* const* argv;
  char* const* env;
  const char* directory;  // null: stay
  const std::vector<Command::Given>& descriptors;
  int last;  // the highest of them
  int link;
};

[[noreturn]] void give_up(const char* what, const char* name) {
  const int error = errno;
  for (const char* part : {what, name, ": ", ::strerrordesc_np(error), "\n"}) {
    const ssize_t ignored = ::write(STDERR_FILENO, part, std::strlen(part));
    static_cast<void>(ignored);
  }
  _exit(error == ENOENT ? kNotFound : kCannotRun);
}

void restore_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void lead_group(int link) {
  ::setpgid(0, 0);
  enter_guard(link);
}

/// Runs in the child: system calls only.
[[noreturn]] void become(const Start& start) {
  lead_group(start.link);
  for (int theirs = 0; theirs <= start.last; ++theirs) ::close(theirs);
  for (const Command::Given& given : start.descriptors) ::dup2(given.ours, given.theirs);
  ::close_range(static_cast<unsigned>(start.last) + 1, UINT_MAX, 0);
  restore_signals();
  if (start.directory != nullptr && ::chdir(start.directory) != 0)
    give_up("cannot enter ", start.directory);
  ::execvpe(start.argv[0], start.argv, start.env);
  give_up("cannot run ", start.argv[0]);
}

/// The rest of a group that has been killed: where we are their reaper, it is ours.
void reap_group(pid_t group) {
  const auto deadline = std::chrono::steady_clock::now() + kKilled;
  while (std::chrono::steady_clock::now() < deadline) {
    const pid_t found = ::waitpid(-group, nullptr, WNOHANG);
    if (found < 0 && errno == ECHILD) return;
    if (found == 0) std::this_thread::sleep_for(1ms);
  }
}

pid_t start(const Command& command, const Guard& guard) {
  int last = STDERR_FILENO;
  for (const Command::Given& given : command.descriptors) last = std::max(last, given.theirs);
  std::vector<Descriptor> copies;
  std::vector<Command::Given> descriptors;
  for (const Command::Given& given : command.descriptors) {
    copies.push_back(copy_above(given.ours, last));
    descriptors.push_back({copies.back().get(), given.theirs});
  }
  const Descriptor link = copy_above(guard.link(), last);
  std::vector<std::string> argv = command.argv, env = command.environment;
  env.push_back(guard.mark());
  const std::vector<char*> argv_pointers = pointers(argv), env_pointers = pointers(env);
  const Start plan{.argv = argv_pointers.data(),
                   .env = env_pointers.data(),
                   .directory = command.directory.empty() ? nullptr : command.directory.c_str(),
                   .descriptors = descriptors,
                   .last = last,
                   .link = link.get()};
  return vfork_into([&] { become(plan); });
}

pid_t start(FunctionRef<int()> body, const Guard& guard) {
  const Descriptor link = copy_above(guard.link(), STDERR_FILENO);
  std::fflush(nullptr);  // what waits there is not the child's to write
  const pid_t pid = ::fork();
  check<IoError>(pid >= 0, "cannot start a child: ", std::strerror(errno));
  if (pid > 0) return pid;
  lead_group(link.get());
  ::close(link.get());
  _exit(body());
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

std::vector<std::string> own_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

Child::Child(const Command& command, Guard& guard) : guard_(guard), pid_(start(command, guard)) {
  ::setpgid(pid_, pid_);  // whoever comes first: vfork may be a plain fork
}

Child::Child(FunctionRef<int()> body, Guard& guard) : guard_(guard), pid_(start(body, guard)) {
  ::setpgid(pid_, pid_);
}

Child::~Child() {
  if (ending_) return;
  signal(SIGKILL);
  wait();
}

std::optional<Ending> Child::exited() const {
  if (ending_) return ending_;
  siginfo_t info{};
  const int found = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  check<IoError>(found == 0, "how process ", pid_,
                 " ended is not known: somebody else has waited for it");
  if (info.si_pid == 0) return std::nullopt;
  return Ending{info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0)
                                           : W_EXITCODE(0, info.si_status)};
}

std::optional<Ending> Child::ended() {
  if (ending_) return ending_;
  const std::optional<Ending> end = exited();
  if (!end) return std::nullopt;
  signal(SIGKILL);  // what it left in its group, while its number is still its own
  wait();
  ending_ = end;
  return ending_;
}

void Child::signal(int number) {
  if (ending_) return;
  ::kill(-pid_, number);
}

void Child::wait() {
  guard_.forget(pid_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  reap_group(pid_);
}

}  // namespace argosy

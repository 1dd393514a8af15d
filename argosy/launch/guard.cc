#include "argosy/launch/guard.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
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
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/proc_files.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;
constexpr int kLink = 0;          // the guard's only descriptor
constexpr auto kKilled = 1000ms;  // the longest that killed processes should take to be gone

std::string new_mark() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("ARGOSY_LAUNCH={}-{}", ::getpid(), now / 1ns);
}

/// Whether any was there.
bool kill_marked(const std::string& mark) {
  namespace fs = std::filesystem;
  bool found = false;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; at != end; at.increment(error)) {
    const auto pid = leading_number(at->path().filename().string());
    if (!pid) continue;
    const std::string environment = '\0' + content_of(at->path() / "environ");
    if (environment.find('\0' + mark + '\0') == std::string::npos) continue;
    found = true;
    ::kill(static_cast<pid_t>(*pid), SIGKILL);
  }
  return found;
}

/// Until none is left, as they may start others meanwhile.
void end_marked(const std::string& mark) {
  const auto deadline = std::chrono::steady_clock::now() + kKilled;
  while (kill_marked(mark) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(1ms);
}

/// Reads the numbers of groups, negative ones to forget, until the other end is closed.
[[noreturn]] void stand_guard(int link, const std::string& mark) {
  ::setsid();
  ::prctl(PR_SET_NAME, "fleetrun-guard");
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  if (::dup2(link, kLink) != kLink) _exit(1);
  ::close_range(kLink + 1, UINT_MAX, 0);
  std::vector<pid_t> groups;
  for (pid_t number = 0; ::recv(kLink, &number, sizeof(number), 0) == sizeof(number);) {
    if (number > 0) groups.push_back(number);
    std::erase(groups, -number);
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  end_marked(mark);
  _exit(0);
}

}  // namespace

Guard::Guard() : mark_(new_mark()) {
  std::array<int, 2> ends{};
  check<IoError>(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0,
                 "no socket for the guard: ", std::strerror(errno));
  link_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  std::fflush(nullptr);  // what waits there is not the guard's to write
  pid_ = ::fork();
  if (pid_ == 0) stand_guard(theirs.get(), mark_);
  check<IoError>(pid_ > 0, "cannot start the guard: ", std::strerror(errno));
}

Guard::~Guard() {
  link_.reset();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
}

void Guard::watch(pid_t group) { tell(group); }

void Guard::forget(pid_t group) { tell(-group); }

void Guard::tell(pid_t number) const {
  // A guard that somebody has killed is no reason to stop a job.
  ::send(link_.get(), &number, sizeof(number), MSG_NOSIGNAL);
}

}  // namespace argosy

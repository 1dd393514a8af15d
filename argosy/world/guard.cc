#include "argosy/world/guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/world/vfork.h"

namespace argosy {
namespace {

constexpr std::string_view kPrefix = "ARGOSY_ENDS_WITH_";

/// What the guard is: a shell, as a fork of this process would keep a copy of all its memory, and
/// there is a shell wherever there are pipe commands. It reads "watch GROUP" and "forget GROUP"
/// until nobody is left to write. Then it looks for the mark until nobody has it any more, as
/// processes may start others meanwhile; one that cannot be killed is given up after a second or
/// two.
constexpr const char* kScript = R"(
echo argosy-guard >/proc/$$/comm
groups=' '
while read -r verb group; do
  case $verb in
    watch) groups="$groups$group " ;;
    forget)
      case $groups in
        *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;;
      esac ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
tries=0
while [ $tries -lt 100 ]; do
  found=$(grep -lszxF -e "$1" /proc/[0-9]*/environ)
  [ -n "$found" ] || break
  for file in $found; do
    file=${file#/proc/}
    kill -s KILL "${file%/environ}"
  done
  tries=$((tries + 1))
  sleep 0.01
done
)";

std::string new_mark() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  static std::atomic<int> count = 0;  // clocks may be coarse
  return fmt::format("{}{}_{}_{}=1", kPrefix, ::getpid(), now.count(), ++count);
}

/// The sockets of this process' guards. A forked child must not hold them open: the guard would
/// wait for its end as well. A std::mutex and no Mutex: fork handlers lock and unlock it, in the
/// child too, where a simulation of threads is only a copy.
class Links {
 public:
  static Links& all() {
    static auto* const links = new Links;  // threads may still fork while the process exits
    return *links;
  }
  void add(int fd) {
    const std::scoped_lock lock(mutex_);
    fds_.push_back(fd);
  }
  void remove(int fd) {
    const std::scoped_lock lock(mutex_);
    std::erase(fds_, fd);
  }

 private:
  Links() {
    ::pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                     [] { all().let_go(); });
  }
  /// In the child. The numbers stay taken, as their owners will close them.
  void let_go() {
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : fds_) ::dup3(nowhere, fd, O_CLOEXEC);
    ::close(nowhere);
    fds_.clear();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<int> fds_;
};

void tell(int link, std::string_view line) {
  // A guard that somebody has killed is no reason to stop.
  ::send(link, line.data(), line.size(), MSG_NOSIGNAL);
}

/// Runs in the child, in our memory: system calls only.
[[noreturn]] void become_guard(int link, int nowhere, char* const* argv, char* const* env,
                               volatile int& error) {
  ::setsid();
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  for (int signal = 1; signal < NSIG; ++signal)
    if (signal != SIGCHLD) ::sigaction(signal, &ignored, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const bool ready = ::dup2(link, STDIN_FILENO) >= 0 && ::dup2(nowhere, STDOUT_FILENO) >= 0 &&
                     ::dup2(nowhere, STDERR_FILENO) >= 0 && ::chdir("/") == 0;
  ::close_range(STDERR_FILENO + 1, UINT_MAX, 0);
  if (ready) ::execve("/bin/sh", argv, env);
  error = errno;
  _exit(1);
}

}  // namespace

Guard::Guard() : owner_(::getpid()), mark_(new_mark()) {
  std::array<int, 2> ends{};
  check<IoError>(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0,
                 "no socket for a guard: ", std::strerror(errno));
  link_ = Descriptor(ends[0]);
  // A guard that somebody has stopped is no reason to wait for ever.
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(link_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const Descriptor other(ends[1]), null(::open("/dev/null", O_RDWR | O_CLOEXEC)),
      theirs = copy_above(other.get(), STDERR_FILENO),
      nowhere = copy_above(null.get(), STDERR_FILENO);
  std::array<const char*, 6> argv = {"argosy-guard", "-c",          kScript,
                                     "argosy-guard", mark_.c_str(), nullptr};
  std::vector<char*> env;  // without marks: who ends what another guard watches, ends last
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with(kPrefix)) env.push_back(*entry);
  env.push_back(nullptr);
  volatile int error = 0;
  pid_ = vfork_into([&] {
    become_guard(theirs.get(), nowhere.get(), const_cast<char* const*>(argv.data()), env.data(),
                 error);
  });
  if (error != 0) {
    ::waitpid(pid_, nullptr, 0);
    fail<IoError>("cannot run /bin/sh to watch over children: ", std::strerror(error));
  }
  Links::all().add(link_.get());
}

Guard::~Guard() {
  Links::all().remove(link_.get());
  link_.reset();
  if (owner_ != ::getpid()) return;  // this is a copy in a forked child
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

Guard& Guard::of_this_process() {
  // Never destroyed: threads may start children while the process exits, and its end is what the
  // guard waits for. In a forked child it is the parent's.
  static std::atomic<Guard*> own = nullptr;
  Guard* found = own;
  if (found != nullptr && found->owner_ == ::getpid()) return *found;
  auto fresh = std::make_unique<Guard>();
  if (own.compare_exchange_strong(found, fresh.get())) return *fresh.release();
  return *found;  // another thread was quicker
}

void Guard::forget(pid_t group) const { tell(link_.get(), fmt::format("forget {}\n", group)); }

void enter_guard(int link) {
  std::array<char, 32> line;
  char* const end = line.data() + line.size();
  char* at = end;
  *--at = '\n';
  for (pid_t rest = ::getpid(); rest > 0; rest /= 10) *--at = static_cast<char>('0' + rest % 10);
  constexpr std::string_view kVerb = "watch ";
  at -= kVerb.size();
  std::memcpy(at, kVerb.data(), kVerb.size());
  tell(link, {at, static_cast<size_t>(end - at)});
}

}  // namespace argosy

#include "argosy/watch/status_report.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "argosy/base/mutex.h"

namespace argosy {
namespace {

/// Signals are for other threads; SIGPIPE, which is for the thread that writes, for nobody.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

/// False once nobody reads any more.
bool write_line(int fd, std::string line) {
  line += '\n';
  pollfd ready{fd, POLLOUT, 0};
  // A pipe that is ready takes a line of this length whole and without a wait.
  if (::poll(&ready, 1, 0) <= 0) return true;
  if ((ready.revents & POLLOUT) == 0) return false;
  return ::write(fd, line.data(), line.size()) >= 0 || errno == EAGAIN || errno == EINTR;
}

}  // namespace

StatusReport::StatusReport(int fd, Look look, std::chrono::milliseconds period) {
  if (fd < 0 || !look) return;
  thread_ = Thread("status", [fd, look = std::move(look), period](const std::stop_token& stop) {
    block_signals();
    Mutex mutex;
    CondVar never;
    const Lock lock(mutex);
    while (!stop.stop_requested()) {
      const auto status = look();
      if (status && !write_line(fd, format_status(*status))) return;
      never.wait_for(mutex, stop, period, [] { return false; });
    }
  });
}

int report_descriptor() {
  const char* const text = std::getenv("ARGOSY_PROGRESS_FD");
  return text == nullptr ? -1 : std::atoi(text);
}

}  // namespace argosy

#include "argosy/doctor/short_child.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "argosy/base/descriptor.h"
#include "argosy/base/error.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A pipe whose write end only the child holds.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    check<IoError>(::pipe2(ends.data(), O_CLOEXEC) == 0,
                   "no pipe for a process: ", std::strerror(errno));
    ours = Descriptor(ends[0]);
    theirs = Descriptor(ends[1]);
  }
  Descriptor ours, theirs;
};

/// Reads until all writers have closed the pipe, or the deadline.
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
ShortChild watch(Child& child, Pipe& pipe, Deadline deadline) {
  constexpr auto kPause = 200us;
  pipe.theirs.reset();
  ShortChild result{.output = read_until(pipe.ours, deadline)};
  while (!(result.ending = child.ended()) && Clock::now() < deadline)
    std::this_thread::sleep_for(kPause);
  return result;
}

}  // namespace

ShortChild run_in_child(FunctionRef<void(int pipe)> body, Deadline deadline) {
  Guard guard;
  Pipe pipe;
  Child child(
      [&] {
        body(pipe.theirs.get());
        return 0;
      },
      guard);
  return watch(child, pipe, deadline);
}

ShortChild run_command(const std::vector<std::string>& command, Deadline deadline) {
  Guard guard;
  Pipe pipe;
  const Descriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Child child(Command{.argv = command,
                      .descriptors = {{nowhere.get(), STDIN_FILENO},
                                      {nowhere.get(), STDOUT_FILENO},
                                      {pipe.theirs.get(), STDERR_FILENO}}},
              guard);
  return watch(child, pipe, deadline);
}

}  // namespace argosy

#include "argosy/data/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/data/child.h"
#include "argosy/data/unpack.h"

namespace argosy {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kPipeBytes = 1 << 20;
constexpr size_t kKeptOfStderr = 4096;
constexpr milliseconds kFirstLook = milliseconds(1), kLastLook = milliseconds(50);

struct Ends {
  Descriptor reading, writing;
};

Ends make_pipe(const std::string& path) {
  std::array<int, 2> fds{};
  check<IoError>(::pipe2(fds.data(), O_CLOEXEC) == 0, path, ": no pipe: ", std::strerror(errno));
  return {Descriptor(fds[0]), Descriptor(fds[1])};
}

void make_nonblocking(const Descriptor& fd) {
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

/// Becomes readable, for poll, when the token is stopped.
class StopSignal {
 public:
  explicit StopSignal(const std::stop_token& stop)
      : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        stop_(stop),
        callback_(stop, Ring{this}) {}
  int fd() const { return event_.get(); }
  bool requested() const { return stop_.stop_requested(); }

 private:
  struct Ring {
    StopSignal* signal;
    void operator()() const { eventfd_write(signal->event_.get(), 1); }
  };
  Descriptor event_;
  std::stop_token stop_;
  std::stop_callback<Ring> callback_;
};

/// Writes unpacked bytes to a child's stdin in a thread of its own, as the child reads them.
class Feeder {
 public:
  Feeder(std::unique_ptr<ByteStream> source, Descriptor into)
      : source_(std::move(source)), into_(std::move(into)), thread_([this] { run(); }) {}
  ~Feeder() { ::shutdown(into_.get(), SHUT_RDWR); }  // ends a blocked send, then the thread joins

  /// Throws what reading the file threw. To be called when the child has ended.
  void rethrow() {
    ::shutdown(into_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void run() try {
    std::vector<char> block(1 << 17);
    while (const size_t n = source_->read(block)) {
      for (size_t sent = 0; sent < n;) {
        const ssize_t now = ::send(into_.get(), block.data() + sent, n - sent, MSG_NOSIGNAL);
        if (now < 0 && errno == EINTR) continue;
        if (now < 0) return;  // the child wants no more
        sent += static_cast<size_t>(now);
      }
    }
    ::shutdown(into_.get(), SHUT_WR);
  } catch (...) {
    failure_ = std::current_exception();
    ::shutdown(into_.get(), SHUT_WR);
  }

  std::unique_ptr<ByteStream> source_;
  Descriptor into_;
  std::exception_ptr failure_;  // read after the thread is joined
  std::jthread thread_;
};

/// The child's stdin: the file itself, or a socket to which a thread writes what the file packs.
struct Input {
  Descriptor fd;
  std::unique_ptr<Feeder> feeder;
};

Input open_input(const std::string& path) {
  Descriptor file = open_for_reading(path);
  std::array<char, kMagicSize> start{};
  const ssize_t n = ::pread(file.get(), start.data(), start.size(), 0);
  if (n <= 0 || packing_of({start.data(), static_cast<size_t>(n)}) == Packing::none)
    return {std::move(file), nullptr};
  std::array<int, 2> fds{};
  check<IoError>(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0, path,
                 ": no socket: ", std::strerror(errno));
  Descriptor mine(fds[0]), childs(fds[1]);
  return {std::move(childs), std::make_unique<Feeder>(open_file(path), std::move(mine))};
}

class Pipe final : public ByteStream {
 public:
  Pipe(const std::string& path, const PipeOptions& options, const std::stop_token& stop)
      : name_(path + " | " + options.command), patience_(options.patience), stop_(stop) {
    Input input = open_input(path);
    Ends out = make_pipe(path), errors = make_pipe(path);
    fcntl(out.reading.get(), F_SETPIPE_SZ, kPipeBytes);  // as large as the system lets us
    make_nonblocking(out.reading);
    make_nonblocking(errors.reading);
    child_ = std::make_unique<Child>(ChildSetup{.command = with_python3(options.command),
                                                .directory = options.directory,
                                                .input = input.fd.get(),
                                                .output = out.writing.get(),
                                                .errors = errors.writing.get()});
    feeder_ = std::move(input.feeder);
    output_ = std::move(out.reading);
    errors_ = std::move(errors.reading);
  }

  size_t read(std::span<char> into) override {
    if (ended_) return 0;
    check<IoError>(!stop_.requested(), name_, ": stopped");
    auto deadline = Clock::now() + patience_;
    while (true) {
      const ssize_t n = ::read(output_.get(), into.data(), into.size());
      if (n > 0) return static_cast<size_t>(n);
      if (n == 0) break;
      check<IoError>(errno == EAGAIN || errno == EINTR, name_, ": ", std::strerror(errno));
      if (wait(output_, deadline)) deadline = Clock::now() + patience_;
    }
    finish();
    return 0;
  }
  const std::string& name() const override { return name_; }

 private:
  /// Waits for output or stderr, and keeps what is on stderr; false if the time is up for a look
  /// at other things. Throws at the deadline and when stopped.
  bool wait(const Descriptor& output, Clock::time_point deadline,
            milliseconds most = milliseconds::max()) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      child_->kill();
      fail<IoError>(name_, ": neither output nor an end for ", patience_.count(), " ms",
                    last_words());
    }
    std::array<pollfd, 3> events = {
        {{output.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}, {stop_.fd(), POLLIN, 0}}};
    constexpr milliseconds kLongestPoll = std::chrono::hours(1);
    const int timeout = static_cast<int>(std::min({left, most, kLongestPoll}).count());
    const int ready = ::poll(events.data(), events.size(), timeout);
    if (ready <= 0) return false;
    if (events[2].revents != 0) fail<IoError>(name_, ": stopped");
    if (events[1].revents != 0) keep_stderr();
    return true;
  }

  /// False if there was nothing more.
  bool keep_stderr() {
    std::array<char, kKeptOfStderr> block;
    const ssize_t n = ::read(errors_.get(), block.data(), block.size());
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) errors_.reset();
    if (n <= 0) return false;
    kept_.append(block.data(), static_cast<size_t>(n));
    if (kept_.size() > kKeptOfStderr) kept_.erase(0, kept_.size() - kKeptOfStderr);
    return true;
  }

  /// After the end of the output: waits for the child and judges how it ended.
  void finish() {
    const auto deadline = Clock::now() + patience_;
    milliseconds look = kFirstLook;
    std::optional<ChildEnd> end;
    while (!(end = child_->ended())) {
      wait(Descriptor(), deadline, look);
      look = std::min(2 * look, kLastLook);
    }
    while (keep_stderr()) continue;
    ended_ = true;
    if (feeder_) feeder_->rethrow();
    check<IoError>(end->ok(), name_, ": ", end->text(), last_words());
  }

  /// The kept end of stderr as one line.
  std::string last_words() const {
    std::string text;
    for (char c : kept_) {
      if (c == '\n')
        text += " | ";
      else if (c >= ' ' || c == '\t')
        text += c;
    }
    while (text.ends_with(" | ")) text.resize(text.size() - 3);
    return text.empty() ? "" : ", stderr: " + text;
  }

  std::string name_;
  milliseconds patience_;
  StopSignal stop_;
  Descriptor output_, errors_;
  std::string kept_;
  std::unique_ptr<Feeder> feeder_;
  std::unique_ptr<Child> child_;  // killed first
  bool ended_ = false;
};

bool on_path(std::string_view program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (true) {
    const size_t end = std::min(rest.size(), rest.find(':'));
    const std::string file = std::string(rest.substr(0, end)) + "/" + std::string(program);
    if (::access(file.c_str(), X_OK) == 0) return true;
    if (end == rest.size()) return false;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

std::unique_ptr<ByteStream> open_pipe(const std::string& path, const PipeOptions& options,
                                      const std::stop_token& stop) {
  check<ConfigError>(!options.command.empty(), path, ": the pipe command is empty");
  if (options.command == "cat") return open_file(path);
  return std::make_unique<Pipe>(path, options, stop);
}

PipedFiles::PipedFiles(std::function<std::optional<std::string>()> next_path, PipeOptions options,
                       std::stop_token stop)
    : next_path_(std::move(next_path)),
      options_(std::move(options)),
      stop_(std::move(stop)),
      ahead_(start()) {}

std::unique_ptr<ByteStream> PipedFiles::next() {
  auto current = std::move(ahead_);
  if (current) ahead_ = start();
  return current;
}

std::unique_ptr<ByteStream> PipedFiles::start() {
  const auto path = next_path_();
  return path ? open_pipe(*path, options_, stop_) : nullptr;
}

std::string with_python3(std::string_view command) {
  constexpr std::string_view kPython = "python";
  const size_t start = std::min(command.size(), command.find_first_not_of(" \t\n"));
  const size_t after = start + kPython.size();
  const bool leads = command.substr(start).starts_with(kPython) &&
                     (after == command.size() || command[after] == ' ' || command[after] == '\t');
  if (!leads || on_path(kPython)) return std::string(command);
  return std::string(command.substr(0, after)) + "3" + std::string(command.substr(after));
}

}  // namespace argosy

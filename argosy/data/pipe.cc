#include "argosy/data/pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/data/unpack.h"
#include "argosy/world/child.h"
#include "argosy/world/processes.h"

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

/// Writes unpacked bytes to a child's stdin on a separate thread, as the child reads them.
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

/// The child's stdin: the file itself, or a socket to which a thread writes its unpacked content.
struct Input {
  Descriptor fd;
  std::unique_ptr<Feeder> feeder;
};

Input make_input(const std::string& path, OpenFile file) {
  // Blocking for the child, which should wait for data that the file does not have yet.
  fcntl(file.fd.get(), F_SETFL, fcntl(file.fd.get(), F_GETFL) & ~O_NONBLOCK);
  std::array<char, kMagicSize> start{};
  const ssize_t n = ::pread(file.fd.get(), start.data(), start.size(), 0);
  if (n <= 0 || packing_of({start.data(), static_cast<size_t>(n)}) == Packing::none)
    return {std::move(file.fd), nullptr};
  std::array<int, 2> fds{};
  check<IoError>(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0, path,
                 ": no socket: ", std::strerror(errno));
  Descriptor mine(fds[0]), childs(fds[1]);
  return {std::move(childs), std::make_unique<Feeder>(open_file(path), std::move(mine))};
}

std::string seconds(milliseconds time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

/// "process 4711 (sleep 1000)": other holders of this end of a pipe.
std::string holders_text(const Descriptor& pipe) {
  struct stat status {};
  if (::fstat(pipe.get(), &status) != 0) return "";
  std::string text;
  for (const pid_t pid : holders_of("pipe:[" + std::to_string(status.st_ino) + "]"))
    if (pid != ::getpid())
      text += (text.empty() ? "process " : ", process ") + std::to_string(pid) + " (" +
              command_of(pid) + ")";
  return text.empty() ? "a process that cannot be seen from here" : text;
}

class Pipe final : public ByteStream {
 public:
  Pipe(const std::string& path, const PipeOptions& options, const SourceOptions& source,
       const std::stop_token& stop)
      : path_(path),
        options_(options),
        stop_(stop),
        watch_(piped_name(path, options.command), source, stop),
        file_(open_for_reading(path)) {
    if (file_->plain) start();
  }

  size_t read(std::span<char> into) override {
    if (ended_) return 0;
    watch_.check_stop();
    if (file_) await_file();
    while (!is_over()) {
      const ssize_t n = ::read(output_.get(), into.data(), into.size());
      if (n > 0) {
        watch_.gave();
        return static_cast<size_t>(n);
      }
      if (n == 0) break;
      check<IoError>(errno == EAGAIN || errno == EINTR, name(), ": ", std::strerror(errno));
      wait({output_.get(), errors_.get()}, watch_.options().held / 2);
    }
    finish();
    return 0;
  }
  const std::string& name() const override { return watch_.source(); }

 private:
  /// A FIFO without a writer yet reads as empty, which is not the end of its data.
  void await_file() {
    SourceWatch watch(path_, watch_.options(), stop_);
    while (!watch.wait({file_->fd.get()})) continue;
    watch.gave();
    start();
  }

  void start() {
    Input input = make_input(path_, *std::exchange(file_, std::nullopt));
    Ends out = make_pipe(path_), errors = make_pipe(path_);
    fcntl(out.reading.get(), F_SETPIPE_SZ, kPipeBytes);  // as large as the system lets us
    make_nonblocking(out.reading);
    make_nonblocking(errors.reading);
    child_ =
        std::make_unique<Child>(Command{.argv = {"/bin/sh", "-c", with_python3(options_.command)},
                                        .directory = options_.directory,
                                        .descriptors = {{input.fd.get(), STDIN_FILENO},
                                                        {out.writing.get(), STDOUT_FILENO},
                                                        {errors.writing.get(), STDERR_FILENO}}},
                                Guard::of_this_process());
    feeder_ = std::move(input.feeder);
    output_ = std::move(out.reading);
    errors_ = std::move(errors.reading);
  }

  /// Keeps stderr's output. Throws after too long a silence, and when stopped.
  void wait(std::initializer_list<int> descriptors, milliseconds most) {
    if (watch_.silence() >= watch_.options().give_up) {
      child_->signal(SIGKILL);
      fail<IoError>(name(), ": neither output nor an end for ", seconds(watch_.options().give_up),
                    last_words());
    }
    const auto left = std::chrono::ceil<milliseconds>(watch_.options().give_up - watch_.silence());
    watch_.wait(descriptors, std::min(most, left), [this] { return circumstances(); });
    if (errors_.get() >= 0) keep_stderr();
  }

  /// The state of a child that gives no data.
  std::string circumstances() {
    const std::string process = "process " + std::to_string(child_->pid());
    if (const auto end = child_->exited())
      return fmt::format(
          ": the command has ended ({}), but {} holds its output open; after {} without data that "
          "is the end of the file",
          end->text(), holders_text(output_), seconds(watch_.options().held));
    if (output_.get() < 0) return ": " + process + " has closed its output and does not end";
    return (is_stopped(child_->pid()) ? ": " + process + " is stopped" : "; it is " + process);
  }

  /// The child has ended, and another holder of its output has been silent for too long.
  bool is_over() {
    if (watch_.silence() == Clock::duration::zero()) return false;
    if (!child_->exited()) return false;
    if (!exited_at_) exited_at_ = Clock::now();
    const auto since = std::min(Clock::now() - *exited_at_, watch_.silence());
    if (since < watch_.options().held) return false;
    watch_.warn(fmt::format(
        "{} is taken to be at its end: the command has ended ({}), and {} has held its output open "
        "for {} without data",
        name(), child_->exited()->text(), holders_text(output_), seconds(watch_.options().held)));
    return true;
  }

  /// False if there was no more.
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
    output_.reset();
    milliseconds look = kFirstLook;
    std::optional<Ending> end;
    while (!(end = child_->ended())) {
      wait({errors_.get()}, look);
      look = std::min(2 * look, kLastLook);
    }
    while (keep_stderr()) continue;
    ended_ = true;
    if (feeder_) feeder_->rethrow();
    check<IoError>(end->ok(), name(), ": ", end->text(), last_words());
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

  const std::string path_;
  const PipeOptions options_;
  const std::stop_token stop_;
  SourceWatch watch_;
  std::optional<OpenFile> file_;  // until the child is started
  Descriptor output_, errors_;
  std::string kept_;
  std::unique_ptr<Feeder> feeder_;
  std::unique_ptr<Child> child_;  // killed first
  std::optional<Clock::time_point> exited_at_;
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

std::string piped_name(const std::string& path, const std::string& command) {
  return command.empty() ? path : path + " through '" + command + "'";
}

std::unique_ptr<ByteStream> open_pipe(const std::string& path, const PipeOptions& options,
                                      const SourceOptions& source, const std::stop_token& stop) {
  check<ConfigError>(!options.command.empty(), path, ": the pipe command is empty");
  if (options.command == "cat") return open_file(path, source, stop);
  return std::make_unique<Pipe>(path, options, source, stop);
}

PipedFiles::PipedFiles(std::function<std::optional<std::string>()> next_path, PipeOptions options,
                       SourceOptions source, std::stop_token stop)
    : next_path_(std::move(next_path)),
      options_(std::move(options)),
      source_(std::move(source)),
      stop_(std::move(stop)),
      ahead_(start()) {}

std::unique_ptr<ByteStream> PipedFiles::next() {
  auto current = std::move(ahead_);
  if (current) ahead_ = start();
  return current;
}

std::unique_ptr<ByteStream> PipedFiles::start() {
  const auto path = next_path_();
  return path ? open_pipe(*path, options_, source_, stop_) : nullptr;
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

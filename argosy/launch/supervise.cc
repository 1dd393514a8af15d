#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>

#include "argosy/base/error.h"
#include "argosy/launch/launcher.h"
#include "argosy/launch/progress_view.h"
#include "argosy/launch/screen.h"
#include "argosy/launch/spawn.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kLook = 100ms;  // how often the first worker's log is looked at
constexpr auto kTerminalPeriod = 200ms, kPlainPeriod = 5000ms;
constexpr size_t kLastLines = 5;
constexpr size_t kLongestReport = 65536;  // bytes

/// Signals arrive by a descriptor while this lives.
class Signals {
 public:
  Signals() {
    // Where it was ignored, the ends of our processes would not be known.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &standard, nullptr);
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    fd_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    check<IoError>(fd_.get() >= 0, "no descriptor for signals: ", std::strerror(errno));
  }
  ~Signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }
  /// The next one but SIGCHLD.
  std::optional<int> next() const {
    for (signalfd_siginfo info{}; ::read(fd_.get(), &info, sizeof(info)) == sizeof(info);)
      if (info.ssi_signo != SIGCHLD) return static_cast<int>(info.ssi_signo);
    return std::nullopt;
  }

 private:
  sigset_t before_;
  Descriptor fd_;
};

/// While this lives, what a process of ours leaves behind becomes our child, so that it can be
/// waited for.
class Subreaper {
 public:
  Subreaper() {
    ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, before_); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int before_ = 0;
};

/// The pipe by which all processes report. They never wait for us: a full pipe loses the report.
class ProgressPipe {
 public:
  ProgressPipe() {
    std::array<int, 2> ends{};
    check<IoError>(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0,
                   "no pipe for progress: ", std::strerror(errno));
    read_ = Descriptor(ends[0]);
    write_ = Descriptor(ends[1]);
  }
  int read_end() const { return read_.get(); }
  int write_end() const { return write_.get(); }
  void close_write_end() { write_.reset(); }

  void feed(ProgressView& view) {
    std::array<char, 4096> block;
    while (true) {
      const ssize_t n = ::read(read_.get(), block.data(), block.size());
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) read_.reset();  // nobody is left; the descriptor would be ready for ever
      if (n <= 0) return;
      waiting_.append(block.data(), static_cast<size_t>(n));
      for (size_t end = 0; (end = waiting_.find('\n')) != std::string::npos;) {
        view.take(std::string_view(waiting_).substr(0, end));
        waiting_.erase(0, end + 1);
      }
      if (waiting_.size() > kLongestReport) waiting_.clear();
    }
  }

 private:
  Descriptor read_, write_;
  std::string waiting_;
};

struct Member {
  const Process* process;
  std::unique_ptr<RunningProcess> running;  // null once it has ended
};

class Supervisor {
 public:
  Supervisor(const std::vector<Process>& processes, std::vector<Descriptor> sockets,
             const Supervision& supervision)
      : supervision_(supervision),
        screen_(supervision.out, supervision.errors),
        view_(
            static_cast<size_t>(std::ranges::count(processes, ProcessKind::worker, &Process::kind)),
            screen_.is_terminal() ? kTerminalPeriod : kPlainPeriod) {
    for (const Process& process : processes) {
      const bool server = process.kind == ProcessKind::server;
      const int listening = server ? sockets[static_cast<size_t>(process.index)].get() : -1;
      members_.push_back({&process, std::make_unique<RunningProcess>(
                                        process, listening, progress_.write_end(), guard_)});
      if (!server && !tail_) tail_.emplace(process.log_file);
    }
    progress_.close_write_end();
    sockets.clear();  // the servers have them now, and a port is free when its server is gone
    has_workers_ = left(ProcessKind::worker) > 0;
  }

  int run() {
    while (!members_.empty()) {
      wait();
      if (const auto signal = signals_.next()) on_signal(*signal);
      reap(ProcessKind::worker);  // first: servers may end because all workers have
      reap(ProcessKind::server);
      advance();
      show();
    }
    if (tail_) screen_.text(tail_->read_rest());
    if (const auto line = view_.last()) screen_.progress(*line);
    screen_.settle();
    return code_;
  }

 private:
  enum class Phase : uint8_t {
    running,
    workers_done,  // servers are given time to end by themselves
    stopping,      // all that is left has been asked to end
  };

  size_t left(ProcessKind kind) const {
    return static_cast<size_t>(std::ranges::count_if(
        members_, [kind](const Member& member) { return member.process->kind == kind; }));
  }

  void wait() {
    std::array<pollfd, 2> ready{pollfd{signals_.fd(), POLLIN, 0},
                                pollfd{progress_.read_end(), POLLIN, 0}};
    ::poll(ready.data(), ready.size(), static_cast<int>(kLook / 1ms));
  }

  void on_signal(int signal) {
    constexpr int kSignalled = 128;
    if (phase_ == Phase::stopping) return kill_left();
    screen_.message(fmt::format("fleetrun: signal {} ({}), stopping", signal, strsignal(signal)));
    code_ = kSignalled + signal;
    stop(signal);
  }

  void reap(ProcessKind kind) {
    for (Member& member : members_) {
      if (member.process->kind != kind) continue;
      const std::optional<Ending> ending = member.running->ended();
      if (!ending) continue;
      member.running.reset();
      on_end(*member.process, *ending);
    }
    std::erase_if(members_, [](const Member& member) { return member.running == nullptr; });
  }

  void on_end(const Process& process, const Ending& ending) {
    if (phase_ == Phase::stopping) return;
    if (!ending.ok()) return fail_with(process, "failed: " + ending.text(), ending.exit_code());
    if (process.kind == ProcessKind::server && has_workers_ && !early_)
      early_ = {&process, Clock::now() + supervision_.grace};
  }

  /// One line on what happened, and the end of the log.
  void fail_with(const Process& process, const std::string& how, int code) {
    if (tail_) screen_.text(tail_->read());
    std::string lines = last_lines(process.log_file, kLastLines, "  ");
    if (!lines.empty()) lines.pop_back();
    screen_.message(fmt::format("fleetrun: {} {}; {} {}{}", process.name(), how, process.log_file,
                                lines.empty() ? "is empty" : "ends with:\n", lines));
    code_ = code;
    stop(SIGTERM);
  }

  void stop(int signal) {
    phase_ = Phase::stopping;
    deadline_ = Clock::now() + supervision_.grace;
    for (Member& member : members_)
      if (member.running) member.running->signal(signal);
  }

  void kill_left() {
    for (Member& member : members_)
      if (member.running) member.running->signal(SIGKILL);
  }

  void advance() {
    const auto now = Clock::now();
    if (phase_ == Phase::running && has_workers_ && left(ProcessKind::worker) == 0) {
      phase_ = Phase::workers_done;
      deadline_ =
          supervision_.workers_elsewhere ? Clock::time_point::max() : now + supervision_.grace;
      return;
    }
    // A server ends when the workers have left it, so it may be quicker than they are. But workers
    // that still run after a while have lost it.
    if (phase_ == Phase::running && early_ && now >= early_->until)
      return fail_with(*early_->process, "ended before the workers: exit status 0", 1);
    if (now < deadline_) return;
    if (phase_ == Phase::workers_done) return stop(SIGTERM);
    std::string names;
    for (const Member& member : members_)
      names += (names.empty() ? "" : ", ") + member.process->name();
    if (!names.empty()) screen_.message("fleetrun: did not end in time, killed: " + names);
    kill_left();
    deadline_ = Clock::time_point::max();
  }

  void show() {
    progress_.feed(view_);
    if (tail_) screen_.text(tail_->read());
    if (const auto line = view_.due(Clock::now())) screen_.progress(*line);
  }

  struct EarlyEnd {
    const Process* process;
    Clock::time_point until;  // by then the workers must have ended too
  };

  const Supervision& supervision_;
  Signals signals_;
  Subreaper subreaper_;
  Guard guard_;
  ProgressPipe progress_;
  Screen screen_;
  ProgressView view_;
  std::vector<Member> members_;  // that run; they need the guard
  std::optional<LogTail> tail_;  // of the first worker
  bool has_workers_ = false;
  std::optional<EarlyEnd> early_;
  Phase phase_ = Phase::running;
  Clock::time_point deadline_ = Clock::time_point::max();
  int code_ = 0;
};

}  // namespace

int supervise(const std::vector<Process>& processes, std::vector<Descriptor> sockets,
              const Supervision& supervision) {
  return Supervisor(processes, std::move(sockets), supervision).run();
}

int run_job(Job job) {
  Reservation reserved = reserve_ports(std::move(job));
  const Job& ready = reserved.job;
  const std::vector<Process> processes = plan_processes(ready);
  std::error_code error;
  std::filesystem::create_directories(ready.log_dir, error);
  check<IoError>(!error, "cannot make the folder ", ready.log_dir, ": ", error.message());
  fmt::print(stderr, "{}\n", banner(ready));
  const bool elsewhere = !std::ranges::all_of(
      ready.workers, [&](const Endpoint& worker) { return ready.is_here(worker); });
  return supervise(processes, std::move(reserved.sockets),
                   {.grace = ready.grace, .workers_elsewhere = elsewhere});
}

}  // namespace argosy

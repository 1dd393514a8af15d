#include "argosy/launch/supervise.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/json.h"
#include "argosy/base/reminder.h"
#include "argosy/launch/comebacks.h"
#include "argosy/launch/progress_view.h"
#include "argosy/launch/screen.h"
#include "argosy/launch/spawn.h"
#include "argosy/launch/status.h"
#include "argosy/world/processes.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kLook = 100ms;  // how often the first worker's log is looked at
constexpr auto kLookForStopped = 500ms;
constexpr auto kTerminalPeriod = 200ms, kPlainPeriod = 5000ms;
constexpr auto kHearing = 300ms;  // for the news that a process was killed
constexpr auto kLinger = 500ms;   // for servers to end by themselves when the workers are done
constexpr auto kFirstPause = 100ms, kLongestPause = 5000ms;  // before a process is started again
constexpr size_t kLastLines = 20;
constexpr size_t kLongestReport = 65536;  // bytes

/// Signals arrive by a descriptor while this lives.
class Signals {
 public:
  Signals() {
    // If SIGCHLD were ignored, we could not learn how our processes end.
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

/// While this lives, orphans of our processes become our children, so that we can wait for them.
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

/// The pipe for all processes' reports. They never wait for us: a full pipe drops the report.
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

  /// Whole lines.
  void feed(const std::function<void(std::string_view)>& take) {
    std::array<char, 4096> block;
    while (true) {
      const ssize_t n = ::read(read_.get(), block.data(), block.size());
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) read_.reset();  // no writer is left; the descriptor would stay ready
      if (n <= 0) return;
      waiting_.append(block.data(), static_cast<size_t>(n));
      for (size_t end = 0; (end = waiting_.find('\n')) != std::string::npos;) {
        take(std::string_view(waiting_).substr(0, end));
        waiting_.erase(0, end + 1);
      }
      if (waiting_.size() > kLongestReport) waiting_.clear();
    }
  }

 private:
  Descriptor read_, write_;
  std::string waiting_;
};

/// 0: there is no such file.
ino_t inode_of(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

/// A process of the job, from its first start to its last end.
struct Charge {
  const Process* process;
  std::unique_ptr<Child> running = {};  // null while it does not run
  int restarts = 0;
  std::optional<Clock::time_point> restart_at = {};  // it failed and is to be started again
  std::optional<Reminder> stopped = {};              // by SIGSTOP, as of the last look
  bool told = false;                                 // of that
  std::optional<ino_t> log = {};                     // the file that it writes to, until it is lost
  Comebacks comebacks = {};

  bool over() const { return running == nullptr && !restart_at; }
  /// "worker 1 (process 4711, which is stopped)"
  std::string text() const {
    return fmt::format("{} (process {}{})", process->name(), running->pid(),
                       stopped ? ", which is stopped" : "");
  }
};

/// Reports events, for people or as lines of JSON.
class Speaker {
 public:
  Speaker(Screen& screen, bool json) : screen_(screen), json_(json) {}

  void say(const std::string& text) const { event("message", nullptr, {}, text); }
  void started(const Process& process, pid_t pid) const {
    if (json_)
      screen_.message(
          fmt::format(R"({{"event": "started", "kind": "{}", "index": {}, "pid": {}, "log": {}}})",
                      name_of(process.kind), process.index, pid, json_string(process.log_file)));
  }
  /// `text` is what people read; "" for what only programs want to know.
  void event(const char* name, const Process* process, std::optional<int> code,
             const std::string& text) const {
    if (!json_) {
      if (!text.empty()) screen_.message("fleetrun: " + text);
      return;
    }
    std::string line = fmt::format("{{\"event\": \"{}\"", name);
    if (process != nullptr)
      line +=
          fmt::format(", \"kind\": \"{}\", \"index\": {}", name_of(process->kind), process->index);
    if (code) line += fmt::format(", \"code\": {}", *code);
    if (!text.empty()) line += ", \"text\": " + json_string(text);
    screen_.message(line + "}");
  }

 private:
  Screen& screen_;
  bool json_;
};

/// The logs that are shown while they grow.
class Tails {
 public:
  Tails(const std::vector<Process>& processes, bool all) {
    for (const Process& process : processes) {
      if (!all && process.kind != ProcessKind::worker) continue;
      tails_.push_back({all ? "[" + process.name() + "] " : "", LogTail(process.log_file)});
      if (!all) return;
    }
  }
  void show(Screen& screen) {
    for (Tail& tail : tails_) print(screen, tail, tail.log.read());
  }
  void show_rest(Screen& screen) {
    for (Tail& tail : tails_) print(screen, tail, tail.log.read_rest());
  }

 private:
  struct Tail {
    std::string prefix;
    LogTail log;
  };
  static void print(Screen& screen, const Tail& tail, const std::string& lines) {
    if (lines.empty()) return;
    if (tail.prefix.empty()) return screen.text(lines);
    std::string text;
    for (size_t begin = 0; begin < lines.size();) {
      const size_t end = std::min(lines.find('\n', begin), lines.size() - 1) + 1;
      text += tail.prefix + lines.substr(begin, end - begin);
      begin = end;
    }
    screen.text(text);
  }
  std::vector<Tail> tails_;
};

class Supervisor {
 public:
  Supervisor(const std::vector<Process>& processes, std::vector<Descriptor> sockets,
             const Supervision& supervision)
      : supervision_(supervision),
        screen_(supervision.out, supervision.errors),
        speaker_(screen_, supervision.json),
        view_(
            static_cast<size_t>(std::ranges::count(processes, ProcessKind::worker, &Process::kind)),
            screen_.is_terminal() ? kTerminalPeriod : kPlainPeriod),
        sockets_(std::move(sockets)) {
    if (!supervision.log_dir.empty())
      board_.emplace(supervision.log_dir, supervision.host, supervision.job);
    for (const Process& process : processes) {
      charges_.push_back({.process = &process});
      start(charges_.back());
    }
    tails_.emplace(processes, supervision.log_all);
    // Restarts need the sockets; without them, a port is freed when its process ends.
    if (supervision.max_restart > 0) return;
    progress_.close_write_end();
    sockets_.clear();
  }

  int run() {
    while (!finished()) {
      wait();
      if (const auto signal = signals_.next()) on_signal(*signal);
      look_for_parent();
      reap(true);  // first: servers may end because all workers have
      reap(false);
      if (supervision_.launchers != nullptr) confer(*supervision_.launchers);
      advance();
      look_for_stopped(Clock::now());
      speak_of_those_left(Clock::now());
      show();
    }
    tails_->show_rest(screen_);
    if (const auto line = view_.last()) screen_.progress(*line);
    screen_.settle();
    for (const Charge& charge : charges_)
      if (charge.comebacks.count() > 0)
        speaker_.event("came back", charge.process, {},
                       charge.comebacks.text(charge.process->name()));
    if (board_) complain(board_->finish(Clock::now()));
    speaker_.event("over", nullptr, code_, "");
    return code_;
  }

 private:
  enum class Phase : uint8_t {
    running,
    workers_done,  // servers are given time to end by themselves
    stopping,      // all that is left has been asked to end
  };

  bool anyone(bool workers) const {
    return std::ranges::any_of(charges_, [&](const Charge& charge) {
      return !charge.over() && (charge.process->kind == ProcessKind::worker) == workers;
    });
  }
  /// No process is left, and no other machine still needs this launcher.
  bool finished() const {
    if (anyone(true) || anyone(false) || suspect_) return false;
    return phase_ != Phase::running || supervision_.launchers == nullptr || all_done_;
  }

  void start(Charge& charge) {
    Process process = *charge.process;
    if (charge.restarts > 0) process.env["ARGOSY_RESTART"] = std::to_string(charge.restarts);
    process.env["ARGOSY_LAUNCH"] = launch_;
    const auto member = static_cast<size_t>(process.member);
    const int listening =
        process.member >= 0 && member < sockets_.size() ? sockets_[member].get() : -1;
    charge.restart_at.reset();
    left_.reset();
    charge.running = spawn(
        process,
        {.listening = listening, .progress = progress_.write_end(), .goes_on = charge.restarts > 0},
        guard_);
    charge.log = inode_of(process.log_file);
    if (board_) board_->started(process.name(), charge.running->pid(), Clock::now());
    speaker_.started(process, charge.running->pid());
  }

  void wait() {
    std::vector<pollfd> ready = {{signals_.fd(), POLLIN, 0}, {progress_.read_end(), POLLIN, 0}};
    if (supervision_.launchers != nullptr)
      for (const int fd : supervision_.launchers->descriptors()) ready.push_back({fd, POLLIN, 0});
    ::poll(ready.data(), ready.size(), static_cast<int>(kLook / 1ms));
  }

  void on_signal(int signal) {
    constexpr int kSignalled = 128;
    if (phase_ == Phase::stopping) return kill_left();
    const std::string text = fmt::format("signal {} ({}), stopping", signal, strsignal(signal));
    speaker_.event("signal", nullptr, signal, text);
    code_ = kSignalled + signal;
    tell_others(text);
    stop(signal);
  }

  void look_for_parent() {
    if (supervision_.parent == 0 || phase_ == Phase::stopping) return;
    if (::getppid() == supervision_.parent) return;
    const std::string text = "what started this launcher is gone, stopping";
    code_ = 1;
    speaker_.event("orphaned", nullptr, code_, text);
    tell_others(text);
    stop(SIGTERM);
  }

  void reap(bool workers) {
    for (Charge& charge : charges_) {
      if ((charge.process->kind == ProcessKind::worker) != workers || !charge.running) continue;
      const std::optional<Ending> ending = charge.running->ended();
      if (!ending) continue;
      charge.running.reset();
      on_end(charge, *ending);
    }
  }

  void on_end(Charge& charge, const Ending& ending) {
    const Process& process = *charge.process;
    charge.stopped.reset();
    left_.emplace(Clock::now(), supervision_.patience);
    if (board_) board_->ended(process.name(), ending.text(), Clock::now());
    speaker_.event("ended", &process, ending.exit_code(), "");
    if (phase_ == Phase::stopping) return;
    if (!ending.ok()) return suspect(charge, ending);
    if (process.kind != ProcessKind::worker && phase_ == Phase::running && !early_)
      early_ = {&process, Clock::now() + supervision_.grace};
  }

  /// Peers of a killed process may fail before we hear of the kill, so blame waits a moment.
  void suspect(Charge& charge, const Ending& ending) {
    if (ending.by_signal() || supervision_.max_restart > 0) return on_failure(charge, ending);
    if (!suspect_) suspect_ = {&charge, ending, Clock::now() + kHearing};
  }

  void on_failure(Charge& charge, const Ending& ending) {
    const std::string how = "failed: " + ending.text();
    if (phase_ != Phase::running || charge.restarts >= supervision_.max_restart)
      return fail_with(*charge.process, how, ending.exit_code());
    const auto pause = std::min<std::chrono::milliseconds>(
        kFirstPause * (1 << std::min(charge.restarts, 6)), kLongestPause);
    ++charge.restarts;
    charge.comebacks.failed(Clock::now());
    charge.restart_at = Clock::now() + pause;
    const std::string text =
        explanation(*charge.process, how) +
        fmt::format("\nfleetrun: {} is started again ({} of {})", charge.process->name(),
                    charge.restarts, supervision_.max_restart);
    speaker_.event("restart", charge.process, ending.exit_code(), text);
  }

  /// How it failed, and the end of its log.
  static std::string explanation(const Process& process, const std::string& how) {
    std::string lines = last_lines(process.log_file, kLastLines, "  ");
    if (!lines.empty()) lines.pop_back();
    return fmt::format("{} {}; {} {}{}", process.name(), how, process.log_file,
                       lines.empty() ? "is empty" : "ends with:\n", lines);
  }

  void fail_with(const Process& process, const std::string& how, int code) {
    tails_->show(screen_);
    const std::string text = explanation(process, how);
    speaker_.event("failed", &process, code, text);
    code_ = code;
    tell_others(text);
    stop(SIGTERM);
  }

  void tell_others(const std::string& text) const {
    if (supervision_.launchers != nullptr) supervision_.launchers->fail(text, code_);
  }

  void stop(int signal) {
    phase_ = Phase::stopping;
    left_.emplace(Clock::now(), supervision_.patience);
    suspect_.reset();
    deadline_ = Clock::now() + supervision_.grace;
    for (Charge& charge : charges_) {
      charge.restart_at.reset();
      if (!charge.running) continue;
      charge.running->signal(signal);
      charge.running->signal(SIGCONT);  // a stopped one would not get it
    }
  }

  void kill_left() {
    for (Charge& charge : charges_)
      if (charge.running) charge.running->signal(SIGKILL);
  }

  /// Exchanges news with the launchers of the other machines.
  void confer(Launchers& launchers) {
    launchers.tend(Clock::now());
    for (const std::string& note : launchers.take_notes()) say_waiting(nullptr, note);
    if (!launchers.failure() || phase_ == Phase::stopping) return;
    code_ = launchers.failure()->code;
    speaker_.event("failed elsewhere", nullptr, code_, "elsewhere: " + launchers.failure()->text);
    stop(SIGTERM);
  }

  void advance() {
    const auto now = Clock::now();
    for (Charge& charge : charges_)
      if (charge.restart_at && now >= *charge.restart_at) start(charge);
    if (suspect_) {
      const bool alone = !anyone(true) && !anyone(false);
      if (!alone && now < suspect_->until) return;
      const Suspect found = *std::exchange(suspect_, {});
      return on_failure(*found.charge, found.ending);
    }
    if (phase_ == Phase::running && !anyone(true) && workers_are_done()) {
      phase_ = Phase::workers_done;
      deadline_ = now + kLinger;
      return;
    }
    // A server ends when the workers have left it, so it may be quicker than they are. But workers
    // that still run after a while have lost it.
    if (phase_ == Phase::running && early_ && now >= early_->until)
      return fail_with(*early_->process, "ended before the workers: exit status 0", 1);
    if (now < deadline_) return;
    if (phase_ == Phase::workers_done) return stop(SIGTERM);
    std::string names;
    for (const Charge& charge : charges_)
      if (charge.running) names += (names.empty() ? "" : ", ") + charge.process->name();
    if (!names.empty()) speaker_.say("did not end in time, killed: " + names);
    left_.emplace(now, supervision_.patience);
    kill_left();
    deadline_ = Clock::time_point::max();
  }

  /// On all machines. A lone launcher without workers waits for the processes it has.
  bool workers_are_done() {
    if (supervision_.launchers == nullptr) return !charges_.empty() && has_workers();
    supervision_.launchers->done();
    all_done_ = supervision_.launchers->all_done();
    return all_done_;
  }
  bool has_workers() const {
    return std::ranges::any_of(
        charges_, [](const Charge& charge) { return charge.process->kind == ProcessKind::worker; });
  }

  void say_waiting(const Process* process, const std::string& text) const {
    speaker_.event("waiting", process, {}, text);
  }

  void look_for_stopped(Clock::time_point now) {
    if (now < next_look_) return;
    next_look_ = now + kLookForStopped;
    look_for_lost_logs();
    for (Charge& charge : charges_) {
      const bool stopped = charge.running && is_stopped(charge.running->pid());
      if (!stopped && std::exchange(charge.told, false) && phase_ != Phase::stopping)
        say_waiting(charge.process, charge.process->name() + " goes on");
      if (!stopped) charge.stopped.reset();
      if (stopped && !charge.stopped) charge.stopped.emplace(now, supervision_.patience);
      if (!charge.stopped || !charge.stopped->due(now)) continue;
      charge.told = true;
      say_waiting(charge.process,
                  fmt::format("{} has been stopped for {:.0f} s, by SIGSTOP or a debugger; kill "
                              "-CONT {} lets it go on",
                              charge.process->name(), seconds(now - charge.stopped->since()),
                              charge.running->pid()));
    }
  }

  /// Reports, once each, processes that still write to a log that was deleted or replaced.
  void look_for_lost_logs() {
    for (Charge& charge : charges_) {
      const std::string& path = charge.process->log_file;
      if (!charge.running || !charge.log) continue;
      if (const ino_t now = inode_of(path); now != 0 && now == *charge.log) continue;
      charge.log.reset();
      speaker_.event(
          "log lost", charge.process, {},
          fmt::format("{} is no longer the file that {} writes to: what it says from now "
                      "on is lost; the job goes on",
                      path, charge.process->name()));
    }
  }

  /// Others have ended, or all are to end, and some still run.
  void speak_of_those_left(Clock::time_point now) {
    if (!left_ || !left_->due(now)) return;
    const bool stopping = phase_ == Phase::stopping;
    std::string names;
    for (const Charge& charge : charges_)
      if (charge.running && (stopping || charge.process->kind == ProcessKind::worker))
        names += (names.empty() ? "" : ", ") + charge.text();
    const std::string time = fmt::format("{:.0f} s", seconds(now - left_->since()));
    if (stopping && !names.empty())
      return say_waiting(nullptr, fmt::format("waits for {} to end, asked {} ago", names, time));
    if (!names.empty())
      return say_waiting(nullptr, fmt::format("still runs: {}; the last of those that have ended "
                                              "did {} ago",
                                              names, time));
    if (phase_ == Phase::running && supervision_.launchers != nullptr)
      say_waiting(nullptr, fmt::format("the workers here have ended {} ago; those of {} have not",
                                       time, supervision_.launchers->not_done()));
  }
  static double seconds(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  }

  void show() {
    const auto now = Clock::now();
    progress_.feed([&](std::string_view line) {
      view_.take(line);
      look_for_comeback(line, now);
      if (board_) board_->take(line, now);
    });
    tails_->show(screen_);
    if (const auto line = view_.due(now)) screen_.progress(*line);
    if (board_) complain(board_->write_if_due(now));
  }

  /// Reports of processes that were started again say when they are back.
  void look_for_comeback(std::string_view line, Clock::time_point now) {
    if (supervision_.max_restart == 0) return;
    const std::optional<ProcessStatus> status = parse_status(line);
    if (!status || status->lost.empty()) return;
    for (Charge& charge : charges_)
      if (charge.running && name_of(charge.process->kind) == status->role &&
          charge.process->index == static_cast<int>(status->index))
        charge.comebacks.take(*status, now);
  }

  /// No job should end because its status cannot be written.
  void complain(const std::optional<std::string>& trouble) const {
    if (trouble) speaker_.say(*trouble);
  }

  struct EarlyEnd {
    const Process* process;
    Clock::time_point until;  // by then the workers must have ended too
  };

  struct Suspect {
    Charge* charge;
    Ending ending;
    Clock::time_point until;  // until then a killed process may turn up
  };

  const Supervision& supervision_;
  /// Of this run: a process that is started again tells by it what it may go on with.
  const std::string launch_ =
      fmt::format("{}-{}", ::getpid(), std::chrono::system_clock::now().time_since_epoch().count());
  Signals signals_;
  Subreaper subreaper_;
  Guard guard_;
  ProgressPipe progress_;
  Screen screen_;
  Speaker speaker_;
  ProgressView view_;
  std::optional<StatusBoard> board_;
  std::vector<Descriptor> sockets_;  // by member
  std::vector<Charge> charges_;      // they need the guard
  std::optional<Tails> tails_;
  std::optional<EarlyEnd> early_;
  std::optional<Suspect> suspect_;  // the first that failed without being killed
  Phase phase_ = Phase::running;
  bool all_done_ = false;
  std::optional<Reminder> left_;  // since the last end, or since all were asked to end
  Clock::time_point next_look_ = {};
  Clock::time_point deadline_ = Clock::time_point::max();
  int code_ = 0;
};

}  // namespace

int supervise(const std::vector<Process>& processes, std::vector<Descriptor> sockets,
              const Supervision& supervision) {
  return Supervisor(processes, std::move(sockets), supervision).run();
}

}  // namespace argosy::launch

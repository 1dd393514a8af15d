#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/watch/status_line.h"

namespace argosy::launch {

/// One process of a job, as its launcher and its own reports know it. Seconds count up to the
/// moment at which this was written.
struct ProcessRecord {
  std::string name = {};  // "worker 1"
  int64_t pid = 0;
  int64_t starts = 1;
  double up = 0;         // seconds since it was started last
  bool stopped = false;  // by SIGSTOP or a debugger
  struct End {
    std::string how = {};  // "exit status 3"
    double seconds = 0;    // since then
  };
  std::optional<End> ended = {};
  struct Report {
    ProcessStatus status = {};
    double seconds = 0;  // since then
  };
  std::optional<Report> report = {};  // the last one
};

/// One launcher's knowledge of its part of a job; the content of its file.
struct StatusFile {
  std::string host = {};
  std::string job = "default";      // --job_id
  int64_t pid = 0;                  // of the launcher
  double started = 0, written = 0;  // Unix time
  bool finished = false;            // no more writes will follow
  std::vector<ProcessRecord> processes = {};
};

/// Lines: "argosy status 1", one "launcher ...", then for each process "process ..." and, if it has
/// reported, its last status line.
std::string format_status_file(const StatusFile& file);
/// Throws DataError that names `path`, the line, and what was expected.
StatusFile parse_status_file(std::string_view text, const std::string& path);

/// LOG_DIR/status.HOST
std::string status_path(const std::string& log_dir, const std::string& host);
/// Status files of all hosts that write to this folder, without earlier jobs'. Throws IoError if
/// there is none.
std::vector<StatusFile> read_status_files(const std::string& log_dir);

/// A launcher's knowledge of its processes, written to a file that `argosy status` reads. The
/// launcher calls, from one thread:
///   board.started(process.name(), pid, now)          also when one is started again
///   board.take(line, now)                            every line of the pipe for reports
///   board.ended(process.name(), ending.text(), now)
///   board.write_if_due(now)                          as often as it likes
///   board.finish(now)                                when no process is left
class StatusBoard {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The folder must be there when something is written. `host`: this machine's name.
  StatusBoard(const std::string& log_dir, std::string host, std::string job = "default");

  void started(const std::string& name, int64_t pid, Time now);
  /// Lines that are no status of a process that was started are passed over.
  void take(std::string_view line, Time now);
  void ended(const std::string& name, const std::string& how, Time now);
  /// Writes at most twice a second. Returns what went wrong, the first time that something does: no
  /// job should end because of it.
  std::optional<std::string> write_if_due(Time now);
  std::optional<std::string> finish(Time now);

  /// The text that would be written.
  StatusFile file(Time now) const;

 private:
  struct Member {
    std::string name;
    int64_t pid = 0, starts = 0;
    Time started = {};
    struct End {
      std::string how;
      Time at;
    };
    std::optional<End> ended = {};
    struct Report {
      ProcessStatus status;
      Time at;
    };
    std::optional<Report> report = {};
  };
  Member* find(std::string_view name);
  std::optional<std::string> write(Time now);

  const std::string path_, beside_, host_, job_;
  const double began_;  // Unix time
  std::vector<Member> members_;
  std::optional<Time> written_;
  bool finished_ = false, failed_ = false;
};

/// This machine's name.
std::string host_name();
/// Seconds of Unix time.
double unix_now();

}  // namespace argosy::launch

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "argosy/launch/guard.h"
#include "argosy/launch/launcher.h"

namespace argosy {

/// How a process ended.
struct Ending {
  int status;  // as of waitpid
  bool ok() const { return exit_code() == 0; }
  int exit_code() const;  // 128 + signal
  bool by_signal() const;
  std::string text() const;  // "exit status 3", "killed by signal 9 (Killed)"
};

/// A process that was started, the leader of its own group. When this is destroyed the group is
/// killed and the process waited for.
class RunningProcess {
 public:
  /// What it gets from the launcher.
  struct Inheritance {
    int listening, progress;  // become its kListenFd (-1: it has none) and kProgressFd
    bool goes_on = false;     // its log does; else it begins anew
  };
  /// Throws IoError; a command that cannot be run is an ending with status 126 or 127 and a line in
  /// the log.
  RunningProcess(const Process& process, const Inheritance& inheritance, Guard& guard);
  ~RunningProcess();
  RunningProcess(const RunningProcess&) = delete;
  RunningProcess& operator=(const RunningProcess&) = delete;

  /// How it ended, or nothing while it runs. What it left in its group is killed.
  std::optional<Ending> ended();
  /// To all of its group.
  void signal(int number);
  pid_t pid() const { return pid_; }

 private:
  void wait();

  Guard& guard_;
  pid_t pid_;
  std::optional<Ending> ending_;
};

}  // namespace argosy

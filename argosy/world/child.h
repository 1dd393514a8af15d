#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "argosy/base/function_ref.h"
#include "argosy/world/guard.h"

namespace argosy {

/// How a process ended.
struct Ending {
  int status;  // as of waitpid
  bool ok() const { return exit_code() == 0; }
  int exit_code() const;  // 128 + signal
  bool by_signal() const;
  std::string text() const;  // "exit status 3", "killed by signal 9 (Killed)"
};

/// "NAME=VALUE" of this process.
std::vector<std::string> own_environment();

/// A program to run.
struct Command {
  std::vector<std::string> argv;  // the first is looked for in PATH
  std::string directory = {};     // to start in; "": here
  std::vector<std::string> environment = own_environment();
  struct Given {
    int ours, theirs;
  };
  /// The child's descriptors, including stdin, stdout and stderr; all others are closed.
  std::vector<Given> descriptors;
};

/// A process that was started, the leader of its own group. The group is killed, and the process
/// waited for, when this is destroyed; a guard does the same if this process is killed before. For
/// one thread at a time.
class Child {
 public:
  /// Throws IoError. A program that cannot be run ends with 127 or 126, as in shells, and its
  /// stderr says why.
  Child(const Command& command, Guard& guard);
  /// Forks: the child calls `body` and exits with its result. Only while there are no other
  /// threads.
  Child(FunctionRef<int()> body, Guard& guard);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// How it ended, or nothing while it runs. Kills what is left of its group.
  std::optional<Ending> ended();
  /// Likewise, but leaves the rest of its group alone.
  std::optional<Ending> exited() const;
  /// Signals its whole group.
  void signal(int number);
  pid_t pid() const { return pid_; }

 private:
  void wait();

  Guard& guard_;
  pid_t pid_;
  std::optional<Ending> ending_;
};

}  // namespace argosy

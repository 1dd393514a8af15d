#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace argosy {

/// How a child process is started; the descriptors become its 0, 1 and 2 and stay the caller's.
struct ChildSetup {
  std::string command, directory;
  int input, output, errors;
};

struct ChildEnd {
  int status;  // as of waitpid
  bool ok() const;
  std::string text() const;  // "exit status 3", "killed by signal 9 (Killed)"
};

/// `sh -c COMMAND` as the leader of its own process group. The group is killed, and the child
/// waited for, when this is destroyed; the child is killed when the thread that started it ends.
class Child {
 public:
  explicit Child(const ChildSetup& setup);  // throws IoError
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// How it ended, or nothing while it runs.
  std::optional<ChildEnd> ended();
  void kill();

 private:
  pid_t pid_;
  std::optional<ChildEnd> end_;
};

}  // namespace argosy

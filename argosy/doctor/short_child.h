#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/function_ref.h"
#include "argosy/world/child.h"

namespace argosy {

/// The outcome of a process with a time limit.
struct ShortChild {
  std::optional<Ending> ending = {};  // absent: it was killed at its deadline
  std::string output = {};
};

using Deadline = std::chrono::steady_clock::time_point;

/// Forks; the child runs `body` with the write end of a pipe and exits. It is gone by the deadline.
/// Throws IoError if it cannot be started. Only from a process with one thread.
ShortChild run_in_child(FunctionRef<void(int pipe)> body, Deadline deadline);

/// Runs a command; `output` is its stderr, stdout is dropped. A missing command ends with 127, as
/// in shells.
ShortChild run_command(const std::vector<std::string>& command, Deadline deadline);

}  // namespace argosy

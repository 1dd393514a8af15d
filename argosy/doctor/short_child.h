#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/function_ref.h"
#include "argosy/world/child.h"

namespace argosy {

/// What a process did that had only so much time.
struct ShortChild {
  std::optional<Ending> ending = {};  // nothing: it was killed when its time was over
  std::string output = {};
};

using Deadline = std::chrono::steady_clock::time_point;

/// Forks; the child runs `body` with the descriptor of a pipe and ends. Nothing of it is left at
/// the deadline. Throws IoError where nothing can be started. Only from a process with one thread.
ShortChild run_in_child(FunctionRef<void(int pipe)> body, Deadline deadline);

/// Runs a command; `output` is what it writes to stderr, stdout is dropped. A command that is not
/// there ends with 127, as in shells.
ShortChild run_command(const std::vector<std::string>& command, Deadline deadline);

}  // namespace argosy

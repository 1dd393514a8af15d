#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "argosy/base/thread.h"
#include "argosy/watch/status_line.h"

namespace argosy {

/// Reports the status of this process while it lives, on a separate thread, so that reports
/// continue if the other threads are stuck. A slow reader misses lines.
class StatusReport {
 public:
  using Look = std::function<std::optional<ProcessStatus>()>;

  /// Writes lines of status_line.h to `fd`, which stays open: at once, then every `period`.
  /// Inactive if `fd` is negative or `look` is empty.
  StatusReport(int fd, Look look,
               std::chrono::milliseconds period = std::chrono::milliseconds(500));

 private:
  Thread thread_;
};

/// The descriptor that the launcher gave this process for its reports, ARGOSY_PROGRESS_FD; -1:
/// none.
int report_descriptor();

}  // namespace argosy

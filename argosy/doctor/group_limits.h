#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace argosy {

/// Limits of this process's control groups (cgroup v1 and v2); absent: no limit.
struct GroupLimits {
  std::optional<uint64_t> memory_left = {};     // bytes, including what the cache could free
  std::optional<uint64_t> processes_left = {};  // threads count as well
  std::optional<double> cores = {};             // CPU time, in cores
};

/// The strictest limits of the group and those around it. `root` is prefixed to /proc and the mount
/// points, for tests.
GroupLimits read_group_limits(const std::string& root = "");

}  // namespace argosy

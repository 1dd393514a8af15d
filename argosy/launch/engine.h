#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/launch/launcher.h"

namespace argosy::launch {

/// This launcher's place, as told by the cluster engine that started it.
struct ClusterEngine {
  std::string name;                   // "Slurm", "OpenMPI"
  int tasks = 1, rank = 0;            // launchers that it has started, and which of them this is
  int nodes = 1, node = 0;            // machines
  bool one_each = false;              // the user has asked for one task on each machine
  std::optional<Endpoint> meet = {};  // where the launchers meet; absent if the engine does not say
  bool head = false;                  // the meeting place is this launcher's
};

/// Absent outside of an engine, or if it has started a single launcher. Pure. Throws ConfigError
/// for inconsistent variables, and in a batch script on several nodes if srun is missing.
std::optional<ClusterEngine> find_engine(const Machine& machine);

/// Slurm's short form: "n[1-3,07],m" is n1, n2, n3, n07, m. Throws ConfigError.
std::vector<std::string> expand_node_list(std::string_view list);

}  // namespace argosy::launch

#pragma once

#include <string>
#include <vector>

#include "argosy/launch/launcher.h"

namespace argosy::launch {

/// The first of the ports that are not given.
inline constexpr int kServerPort = 6170, kRankPort = 6070;
inline constexpr const char* kLoopback = "127.0.0.1";

/// Makes the members of a job from flags that list addresses, or count processes of this machine.
/// Throws ConfigError naming the flag.
class Lists {
 public:
  Lists(const Flags& flags, Job& job) : flags_(flags), job_(job) {}

  void read_servers_and_workers();
  /// Stages begin with 2: the workers are the first.
  void read_heter_workers();
  void read_coordinators();
  /// Every machine has as many ranks as this one.
  void read_ranks(const std::vector<std::string>& hosts, size_t on_each, int first_port);
  void add(ProcessKind kind, const std::vector<Endpoint>& places, int stage = 1,
           const std::string& device = "");

 private:
  /// Free ports, or from --start_port on, skipping `before` ports that others use.
  std::vector<Endpoint> counted(size_t count, const std::string& host, size_t before) const;
  std::vector<Endpoint> endpoints() const;

  const Flags& flags_;
  Job& job_;
};

}  // namespace argosy::launch

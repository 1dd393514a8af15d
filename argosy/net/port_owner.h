#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "argosy/net/endpoint.h"

namespace argosy {

/// The process that holds a TCP port of this machine.
struct PortOwner {
  pid_t pid = 0;             // 0: a process that we may not look at
  std::string command = {};  // its command line, cut where it is long
  unsigned user = 0;         // who owns the socket
  std::string text()
      const;  // "process 4711 (nginx -g daemon off;)", "another user's process (user 33)"
};

/// Looks for the socket that keeps others from listening here: one of this address and port, or of
/// this port on all addresses. A host that is not an address stands for every one. `proc`: another
/// folder than /proc, for tests. Takes a few ms, so only where binding has failed.
std::optional<PortOwner> find_port_owner(const Endpoint& at, const std::string& proc = "/proc");

}  // namespace argosy

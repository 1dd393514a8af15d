#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "argosy/net/endpoint.h"

namespace argosy {

/// The process that holds a TCP port of this machine.
struct PortOwner {
  pid_t pid = 0;             // 0: a process that we may not look at
  std::string command = {};  // its command line, truncated if long
  unsigned user = 0;         // the socket's owner
  std::string text()
      const;  // "process 4711 (nginx -g daemon off;)", "another user's process (user 33)"
};

/// Finds the socket that keeps others from listening here: one on this address and port, or on this
/// port for all addresses. A host name matches any address. `proc`: replaces /proc in tests. Takes
/// a few ms: call it only after a bind has failed.
std::optional<PortOwner> find_port_owner(const Endpoint& at, const std::string& proc = "/proc");

}  // namespace argosy

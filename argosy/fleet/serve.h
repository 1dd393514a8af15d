#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "argosy/base/env.h"
#include "argosy/fleet/communicator.h"
#include "argosy/fleet/role.h"
#include "argosy/net/transport.h"
#include "argosy/ps/placement.h"
#include "argosy/ps/server.h"

namespace argosy {

/// Which server holds what of a plan, the same in every process of a job. In geo mode servers add
/// up differences of weights, whatever the plan's rules are.
Placement placement_of(const Plan& plan, const Strategy& strategy, uint32_t servers,
                       const PlacementOptions& options = {});

/// Serves as the role says, over TCP, until every worker has left, or SIGTERM or SIGINT comes, or
/// `stop` says so (asked ten times a second). Prints "Server listening on IP:PORT" when it is
/// ready.
struct ServeOptions {
  Strategy strategy = {};
  Env::Duration grace = std::chrono::seconds(3);  // of ServerOptions
  std::function<bool()> stop = {};
  std::function<void(PsServer&)> before = {};  // what to load before anybody comes
  std::function<void()> after = {};            // all have left, the tables are still there
  std::FILE* out = stdout;
};
void serve(Env& env, const Placement& placement, const Role& role, const ServeOptions& options);

/// How a worker's links are best made: threads that compute do not send large frames themselves,
/// unless they have to wait for the answer anyway.
LinkOptions worker_links(const Strategy& strategy);

/// A worker's wires to the servers of its role. Connecting goes on in the background.
Wires connect_servers(Env& env, Transport& transport, Placement placement, const Role& role,
                      const Strategy& strategy, std::FILE* out = stderr);

}  // namespace argosy

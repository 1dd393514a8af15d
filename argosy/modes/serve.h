#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "argosy/base/env.h"
#include "argosy/modes/communicator.h"
#include "argosy/net/tolerance.h"
#include "argosy/net/transport.h"
#include "argosy/plan/role.h"
#include "argosy/ps/placement.h"
#include "argosy/ps/server.h"

namespace argosy {

/// The placement of a plan; the same in every process of a job.
ps::Placement placement_of(const Plan& plan, const Strategy& strategy, uint32_t servers,
                           const ps::PlacementOptions& options = {});

/// serve() runs the server of a role over TCP until every worker has left, SIGTERM or SIGINT comes,
/// or `stop` (polled ten times a second) says so. It prints "Server listening on IP:PORT" when
/// ready.
struct ServeOptions {
  Strategy strategy = {};
  size_t threads = 0;  // of ServerOptions; 0: depends on the machine
  Tolerance tolerance = tolerance_from_env();
  std::function<bool()> stop = {};
  std::function<void(ps::Server&)> before = {};  // loads a model before the first worker comes
  /// As in ServerOptions.
  std::function<void(const std::string& folder, uint64_t generation)> on_save = {};
  std::optional<ps::JournalOptions> journal = {};                    // as in ServerOptions
  std::function<void(std::optional<uint64_t> run)> on_settled = {};  // as in ServerOptions
  std::string table_folder = {};                                     // as in ServerOptions
  std::function<void()> after = {};  // after all have left, with the tables still alive
  std::FILE* out = stdout;
  std::shared_ptr<Metrics> metrics = {};  // as in ServerOptions
};
void serve(Env& env, const ps::Placement& placement, const Role& role, const ServeOptions& options);

/// The link options that suit the mode of a worker.
LinkOptions worker_links(const Strategy& strategy);

/// A worker's wires to the servers of its role. It connects in the background.
Wires connect_servers(Env& env, Transport& transport, ps::Placement placement, const Role& role,
                      const Strategy& strategy, std::FILE* out = stderr);

}  // namespace argosy

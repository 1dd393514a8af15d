#pragma once

#include <memory>

#include "argosy/base/env.h"
#include "argosy/ps/client.h"
#include "argosy/ps/server.h"
#include "argosy/watch/activity.h"
#include "argosy/watch/status_report.h"

namespace argosy {

/// The status of a worker: its activity, what it waits for, and the rate and staleness of the last
/// seconds. For one thread at a time.
StatusReport::Look look_at_worker(Env& env, int index, const Activity& activity,
                                  std::shared_ptr<const ps::Client> client);

/// The status of one of `ranks` ranks: its activity, the rate of the last seconds, and, in
/// activities that need the others, a wait for them. For one thread at a time.
StatusReport::Look look_at_rank(Env& env, int index, int ranks, const Activity& activity);

/// The same with ProcessStatus::lost.
StatusReport::Look with_loss(StatusReport::Look look, std::string lost);

/// The status of a server, while it lives. Thread safety: full.
StatusReport::Look look_at_server(Env& env, int index, std::weak_ptr<ps::Server> server);

}  // namespace argosy

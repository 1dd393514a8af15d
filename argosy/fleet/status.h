#pragma once

#include <memory>

#include "argosy/base/env.h"
#include "argosy/ps/client.h"
#include "argosy/ps/server.h"
#include "argosy/watch/activity.h"
#include "argosy/watch/status_report.h"

namespace argosy {

/// What a worker reports of itself: its activity, what it waits for, and the rate and staleness of
/// the last seconds. To be called by one thread at a time.
StatusReport::Look look_at_worker(Env& env, int index, const Activity& activity,
                                  std::shared_ptr<const PsClient> client);

/// What one of `ranks` ranks reports of itself: its activity, the rate of the last seconds, and
/// that it waits for the others where it can do nothing alone. To be called by one thread at a
/// time.
StatusReport::Look look_at_rank(Env& env, int index, int ranks, const Activity& activity);

/// What a server reports of itself, while it lives. Thread safety: full.
StatusReport::Look look_at_server(Env& env, int index, std::weak_ptr<PsServer> server);

}  // namespace argosy

#pragma once

#include <optional>

#include "argosy/comm/group.h"
#include "argosy/plan/role.h"
#include "argosy/plan/strategy.h"

namespace argosy {

/// This process among the ranks of a collective job, as fleetrun tells it:
/// PADDLE_TRAINER_ENDPOINTS, PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM, ARGOSY_LISTEN_FD,
/// ARGOSY_BACKEND, FLAGS_selected_gpus and PADDLE_JOB_ID. Ranks that no endpoints are listed for
/// meet as PADDLE_GLOO_RENDEZVOUS says: 2 in files below PADDLE_GLOO_FS_PATH, 3 by HTTP at
/// PADDLE_GLOO_HTTP_ENDPOINT, where rank 0 serves; POD_IP is this one's address. Nothing where
/// there is neither, or servers are listed. Throws ConfigError naming the variable.
std::optional<comm::GroupOptions> group_from_env(const Getenv& get);

/// Of a rank.
comm::GroupOptions group_options(const Role& role);
/// The same as the strategy wants the sums to be made. Throws ConfigError where it asks for a
/// number of ranks on each host that is not there.
comm::GroupOptions group_options(const Role& role, const CollectiveStrategy& strategy);

}  // namespace argosy

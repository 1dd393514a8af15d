#pragma once

#include <optional>

#include "argosy/comm/group.h"
#include "argosy/plan/role.h"
#include "argosy/plan/strategy.h"

namespace argosy {

/// This process among the ranks of a collective job, from the variables that fleetrun sets:
/// PADDLE_TRAINER_ENDPOINTS, PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM, ARGOSY_LISTEN_FD,
/// ARGOSY_BACKEND, FLAGS_selected_gpus and PADDLE_JOB_ID. Without endpoints, ranks meet as
/// PADDLE_GLOO_RENDEZVOUS says: 2 in files below PADDLE_GLOO_FS_PATH, 3 by HTTP at
/// PADDLE_GLOO_HTTP_ENDPOINT, where rank 0 serves; POD_IP is this one's address. Absent if neither
/// is set, or servers are listed. Throws ConfigError naming the variable.
std::optional<comm::GroupOptions> group_from_env(const Getenv& get);

/// The options for a rank's role.
comm::GroupOptions group_options(const Role& role);
/// Also with the strategy's way of summing. Throws ConfigError if its number of ranks per host does
/// not match.
comm::GroupOptions group_options(const Role& role, const CollectiveStrategy& strategy);

}  // namespace argosy

#pragma once

#include <optional>

#include "argosy/comm/group.h"
#include "argosy/fleet/role.h"

namespace argosy {

/// This process among the ranks of a collective job, as fleetrun tells it:
/// PADDLE_TRAINER_ENDPOINTS, PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM, ARGOSY_LISTEN_FD and
/// PADDLE_JOB_ID. Nothing where no endpoints are listed, or servers are. Throws ConfigError naming
/// the variable.
std::optional<GroupOptions> group_from_env(const Getenv& get);

/// Of a rank.
GroupOptions group_options(const Role& role);

}  // namespace argosy

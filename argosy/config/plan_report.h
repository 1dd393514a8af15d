#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "argosy/config/config.h"
#include "argosy/ps/placement.h"

namespace argosy {

struct Mode;

struct PlanOptions {
  uint32_t servers = 2, workers = 2;
  ps::PlacementOptions placement = {};
};

/// A configuration spread over servers and workers: the worker's program, each server's part, bytes
/// of a step on the wire, memory of each process. Nothing is trained or read.
/// docs/how-to/read-a-plan.md explains the text.
std::string plan_report(const Config& config, const PlanOptions& options);

struct WireBytes {
  size_t up = 0, down = 0;
};
/// Traffic between a worker and one server in a step of this mode, including frame headers:
/// gradients of one batch out and values of another in, or one exchange of differences. `keys`: by
/// key set, how many of the server's keys a batch has, the same in both; empty if the model has no
/// rows.
WireBytes wire_bytes(const ps::Placement& placement, const Mode& mode, uint32_t server,
                     std::span<const size_t> keys);

}  // namespace argosy

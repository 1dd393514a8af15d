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

/// What a configuration becomes with so many servers and workers: the worker's program, what each
/// server holds, bytes of a step on the wire, memory of each process. Nothing is trained or read.
/// docs/how-to/read-a-plan.md explains the text.
std::string plan_report(const Config& config, const PlanOptions& options);

struct WireBytes {
  size_t up = 0, down = 0;
};
/// What a worker says to one server and hears from it in a step of such a mode, frames and all: the
/// gradients of one batch go out, and the values for another come in; or what one exchange of
/// differences takes. `keys`: how many of the server's keys each key set has, the same in both
/// batches; empty where a model has no rows.
WireBytes wire_bytes(const ps::Placement& placement, const Mode& mode, uint32_t server,
                     std::span<const size_t> keys);

}  // namespace argosy

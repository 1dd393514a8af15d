#pragma once

#include "argosy/graph/program.h"

namespace argosy {

/// Runs the node's op. A DataError of values that it cannot take names the node.
void run_op(const Program& program, const Node& node, const RunCtx& ctx);

}  // namespace argosy

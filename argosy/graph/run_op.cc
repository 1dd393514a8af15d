#include "argosy/graph/run_op.h"

#include "argosy/base/error.h"
#include "argosy/graph/builder.h"

namespace argosy {

void run_op(const Program& program, const Node& node, const RunCtx& ctx) {
  try {
    node.op->run(ctx);
  } catch (const DataError& e) {
    throw DataError(describe_failure(program, node, e.what()));
  }
}

}  // namespace argosy

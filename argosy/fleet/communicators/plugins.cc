// Collects the modes of this folder: every other .cc file here defines
// std::unique_ptr<Communicator> <file>(const Plan&, const Strategy&, const Wires&).
#include "argosy/base/error.h"
#include "argosy/fleet/communicator.h"
#include "argosy/graph/rank_sum.h"

namespace argosy {
namespace communicators {

#define PLUGIN(file)                                                             \
  std::unique_ptr<Communicator> file(const Plan& plan, const Strategy& strategy, \
                                     const Wires& wires);
#include "argosy/fleet/communicators.def"
#undef PLUGIN

}  // namespace communicators

std::unique_ptr<Communicator> make_communicator(const Plan& plan, const Strategy& strategy,
                                                const Wires& wires) {
  check<ConfigError>(
      strategy.mode == "local" || strategy.mode == "collective" ||
          rank_sum_sizes(plan.worker).empty(),
      "sync_batch_norm: a model with it is trained by ranks without servers, the mode is ",
      strategy.mode);
  std::string known;
#define PLUGIN(file)                                                             \
  if (strategy.mode == #file) return communicators::file(plan, strategy, wires); \
  known += (known.empty() ? "" : ", ") + std::string(#file);
#include "argosy/fleet/communicators.def"
#undef PLUGIN
  fail<ConfigError>("mode '", strategy.mode, "', expected one of: ", known);
}

}  // namespace argosy

#include "argosy/modes/mode.h"

#include <algorithm>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/graph/sum_over_ranks.h"

namespace argosy {

Mode::Held Mode::on_servers(const Plan& plan) const {
  Held held{plan.parameters, plan.tables};
  if (pushes == Pushes::gradients) return held;
  const auto add_up = [](auto& spec) {
    spec.rule = "add";
    spec.learning_rate = "1";
    spec.regularizer = spec.clip = "";
  };
  std::ranges::for_each(held.parameters, add_up);
  std::ranges::for_each(held.tables, add_up);
  return held;
}

std::string_view Mode::pushed_ending() const {
  return pushes == Pushes::gradients ? "@GRAD" : "@DELTA";
}

const Mode& mode(std::string_view name) {
  const auto found = std::ranges::find(modes(), name, &Mode::name);
  if (found != modes().end()) return *found;
  std::vector<std::string> names;
  std::string known;
  for (const Mode& one : modes()) {
    names.push_back(one.name);
    known += (known.empty() ? "" : ", ") + one.name;
  }
  const std::string near = nearest(name, names);
  fail<ConfigError>("mode '", name, "' is not known",
                    near.empty() ? "" : "; did you mean " + near + "?", " There are: ", known);
}

std::unique_ptr<Communicator> make_communicator(const Plan& plan, const Strategy& strategy,
                                                const Wires& wires) {
  const Mode& chosen = mode(strategy.mode);
  check<ConfigError>(
      chosen.needs != Mode::Needs::servers || sum_over_ranks_sizes(plan.worker).empty(),
      "sync_batch_norm: a model with it is trained by ranks without servers, the mode is ",
      strategy.mode);
  check<ConfigError>(chosen.needs != Mode::Needs::servers || wires.servers != nullptr, "mode '",
                     strategy.mode, "' needs servers");
  check<ConfigError>(chosen.needs != Mode::Needs::ranks || wires.group != nullptr, strategy.mode,
                     ": no ranks to train with; fleetrun --nproc_per_node starts them");
  check<ConfigError>(!chosen.threads_share_a_batch || strategy.threads == 1, strategy.mode,
                     ": the threads of a ", chosen.needs == Mode::Needs::ranks ? "rank" : "worker",
                     " share one batch; give chunks");
  return chosen.make(plan, strategy, wires);
}

}  // namespace argosy

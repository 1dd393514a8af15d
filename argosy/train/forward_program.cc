#include "argosy/train/forward_program.h"

#include <set>

#include "argosy/base/error.h"
#include "argosy/graph/replay.h"
#include "argosy/nn/merge_lookups.h"

namespace argosy {
namespace {

std::vector<Var> replay_into(Builder& g, const Program& program) {
  Replay replay(program, g);
  while (!replay.at_end()) replay.record();
  replay_updates(program, replay, g);
  std::vector<Var> vars;
  vars.reserve(program.vars.size());
  for (const VarId id : replay.now()) vars.push_back({&g, id});
  return vars;
}

/// A parameter without a gradient is a state that nothing updates.
void freeze(Program& program, const std::set<std::string>& names) {
  for (VarDesc& desc : program.vars)
    if (desc.kind == VarKind::param && names.contains(desc.name)) desc.kind = VarKind::state;
}

std::set<std::string> without_gradient(const Program& program, VarId loss) {
  std::set<std::string> names;
  for (const VarDesc& desc : program.vars)
    if (desc.kind == VarKind::param) names.insert(desc.name);
  if (!loss) return names;
  Builder g;
  const std::vector<Var> vars = replay_into(g, program);
  for (const VarGrad& pair : g.backward(vars[loss.index()], program.var(loss).at))
    names.erase(g.program().var(pair.var).name);
  return names;
}

}  // namespace

ReplayedModel as_model(const ForwardProgram& recorded) {
  auto [program, now] = nn::merge_lookups(recorded.program);
  const auto moved = [&now = now](VarId id) { return id ? now[id.index()] : id; };
  freeze(program, {recorded.frozen.begin(), recorded.frozen.end()});
  freeze(program, without_gradient(program, moved(recorded.loss)));

  ForwardProgram merged = recorded;
  merged.program = std::move(program);
  merged.loss = moved(merged.loss);
  for (auto* named : {&merged.metrics, &merged.predictions})
    for (auto& [name, id] : *named) id = moved(id);
  for (ForwardProgram::Metered& metered : merged.meters) {
    metered.prediction = moved(metered.prediction);
    metered.label = moved(metered.label);
  }
  // Recording a program anew numbers its variables as it did before, so `now` holds there too.
  return {[merged = std::move(merged)](Builder& g) {
            const std::vector<Var> vars = replay_into(g, merged.program);
            ModelOutputs outputs;
            if (merged.loss) outputs.loss = vars[merged.loss.index()];
            for (const auto& [name, id] : merged.metrics)
              outputs.metrics.emplace_back(name, vars[id.index()]);
            for (const auto& [name, id] : merged.predictions)
              outputs.predictions.emplace_back(name, vars[id.index()]);
            for (const ForwardProgram::Metered& metered : merged.meters)
              outputs.meters.push_back({.name = metered.name,
                                        .meter = metered.meter,
                                        .prediction = vars[metered.prediction.index()],
                                        .label = vars[metered.label.index()]});
            return outputs;
          },
          std::move(now)};
}

}  // namespace argosy

#include "argosy/fleet/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/ps/gradient.h"
#include "argosy/ps/initializer.h"
#include "argosy/ps/rule.h"
#include "argosy/ps/schedule.h"

namespace argosy {
namespace {

bool clips_on_worker(const std::string& clip) {
  if (clip.empty()) return false;
  const Call call(clip);
  if (call.name() == "value") return false;
  check<ConfigError>(call.name() == "norm" || call.name() == "global_norm", "clip '", clip,
                     "', expected value(x), norm(x) or global_norm(x)");
  call.expect("clip", 1, {"limit"});
  check<ConfigError>(call.number(0, "limit") > 0, "clip '", clip, "': the limit must be positive");
  return true;
}

}  // namespace

Plan make_plan(Program program, const Optimizer& optimizer, uint64_t seed) {
  Plan plan;
  const bool on_worker = clips_on_worker(optimizer.clip);
  plan.clip = on_worker ? optimizer.clip : "";
  // What does not parse is refused here, before any process starts to train.
  make_rule(optimizer.rule);
  static_cast<void>(Schedule(optimizer.learning_rate));
  static_cast<void>(GradientPolicy(optimizer.regularizer, on_worker ? "" : optimizer.clip));

  for (const VarGrad& pair : program.grads) {
    const VarDesc& desc = program.var(pair.var);
    check<ConfigError>(desc.kind == VarKind::param, "'", desc.name, "' is ", name(desc.kind),
                       ", only parameters can be planned");
    const auto elements = static_cast<size_t>(desc.type.shape.numel());
    plan.edges.push_back(
        {pair.var, pair.grad, VarKind::param, static_cast<uint32_t>(plan.tables.size())});
    static_cast<void>(Initializer(desc.init));
    plan.tables.push_back({.name = desc.name,
                           .dim = elements,
                           .elements = elements,
                           .rule = optimizer.rule,
                           .init = desc.init,
                           .learning_rate = optimizer.learning_rate,
                           .regularizer = optimizer.regularizer,
                           .clip = on_worker ? "" : optimizer.clip,
                           .seed = seed});
  }
  for (const StateUpdate& update : program.updates)
    plan.edges.push_back({update.state, update.next, VarKind::state, 0});
  for (const VarDesc& desc : program.vars) {
    if (desc.kind == VarKind::state) plan.states.push_back(desc);
    if (desc.kind != VarKind::param) continue;
    check<ConfigError>(
        std::ranges::any_of(plan.tables, [&](const TableSpec& t) { return t.name == desc.name; }),
        "parameter '", desc.name, "' has no gradient: the loss does not depend on it");
  }
  plan.worker = std::move(program);
  return plan;
}

std::string Plan::text() const {
  std::string out = worker.text();
  auto line = std::back_inserter(out);
  for (size_t i = 0; i < tables.size(); ++i) {
    const TableSpec& t = tables[i];
    fmt::format_to(line, "table {} {} {} floats in blocks of {} rule=\"{}\" lr=\"{}\"", i, t.name,
                   t.elements, t.dim, t.rule, t.learning_rate);
    if (!t.regularizer.empty()) fmt::format_to(line, " regularizer=\"{}\"", t.regularizer);
    if (!t.clip.empty()) fmt::format_to(line, " clip=\"{}\"", t.clip);
    out += '\n';
  }
  if (!clip.empty()) fmt::format_to(line, "clip \"{}\" on the worker\n", clip);
  for (const Edge& edge : edges) {
    if (edge.kind == VarKind::param)
      fmt::format_to(line, "send %{} -> table {}\n", edge.value.i, edge.table);
    else
      fmt::format_to(line, "keep %{} -> {}\n", edge.value.i, worker.var(edge.var).name);
  }
  return out;
}

}  // namespace argosy

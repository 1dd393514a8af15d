#include "argosy/graph/replay.h"

#include "argosy/base/error.h"

namespace argosy {

Replay::Replay(const Program& program, Builder& g)
    : program_(program), g_(g), maker_(program.vars.size()), now_(program.vars.size()) {
  check<Error>(program.grads.empty(), "a program with gradients cannot be recorded anew");
  for (const Node& node : program.nodes)
    for (const VarId id : node.out) maker_[id.index()] = &node;
}

void Replay::record() {
  const VarDesc& desc = program_.vars[next_];
  const Node* made_by = node();
  if (made_by == nullptr) return record_as(g_.variable(desc, desc.at));
  const std::vector<Var> out =
      g_.apply_all(made_by->op->name, of(made_by->in), made_by->attrs, made_by->at);
  for (size_t i = 0; i < out.size(); ++i) record_as(out[i]);
}

void Replay::record_as(Var var) {
  const std::string& name = program_.vars[next_].name;
  if (!name.empty() && g_.program().var(var.id).name.empty()) g_.name(var, name);
  now_[next_++] = var;
}

std::vector<Var> Replay::of(std::span<const VarId> ids) const {
  std::vector<Var> vars;
  vars.reserve(ids.size());
  for (const VarId id : ids) vars.push_back(now_[id.index()]);
  return vars;
}

std::vector<VarId> Replay::now() const {
  std::vector<VarId> ids;
  ids.reserve(now_.size());
  for (const Var& var : now_) ids.push_back(var.id);
  return ids;
}

void replay_updates(const Program& program, const Replay& replay, Builder& g) {
  for (const StateUpdate& update : program.updates)
    g.update(replay[update.state], replay[update.next]);
}

}  // namespace argosy

#include "argosy/graph/program.h"

#include <algorithm>
#include <sstream>

namespace argosy {

const char* name(VarKind kind) {
  switch (kind) {
    case VarKind::input:
      return "input";
    case VarKind::rows:
      return "rows";
    case VarKind::param:
      return "param";
    case VarKind::state:
      return "state";
    case VarKind::temp:
      return "temp";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, const VarType& type) {
  return out << type.dtype << type.shape;
}

std::string Program::label(VarId id) const {
  const std::string& name = var(id).name;
  return "%" + std::to_string(id.i) + (name.empty() ? "" : " " + name);
}

VarId Program::find(std::string_view name) const {
  const auto found = std::ranges::find(vars, name, &VarDesc::name);
  if (found == vars.end()) return {};
  return {static_cast<int32_t>(found - vars.begin())};
}

Program Program::pruned(std::vector<VarId> wanted) const {
  std::vector<bool> needed(vars.size());
  for (VarId id : wanted) needed[id.index()] = true;
  std::vector<const Node*> kept;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (std::ranges::none_of(node->out, [&](VarId id) { return needed[id.index()]; })) continue;
    for (VarId id : node->in) needed[id.index()] = true;
    for (VarId id : node->out) needed[id.index()] = true;
    kept.push_back(&*node);
  }

  Program result;
  std::vector<VarId> renamed(vars.size());
  for (size_t i = 0; i < vars.size(); ++i) {
    if (!needed[i]) continue;
    renamed[i] = {static_cast<int32_t>(result.vars.size())};
    result.vars.push_back(vars[i]);
  }
  const auto rename = [&](std::vector<VarId> ids) {
    for (VarId& id : ids) id = renamed[id.index()];
    return ids;
  };
  for (auto node = kept.rbegin(); node != kept.rend(); ++node) {
    Node copy = **node;
    copy.in = rename(std::move(copy.in));
    copy.out = rename(std::move(copy.out));
    result.nodes.push_back(std::move(copy));
  }
  result.outputs = rename(std::move(wanted));
  return result;
}

Program Program::for_inference(std::vector<VarId> wanted) const {
  Program result = pruned(std::move(wanted));
  for (Node& node : result.nodes)
    if (node.attrs.has("is_test")) node.attrs.set("is_test", int64_t{1});
  return result;
}

std::vector<bool> needed_variables(const Program& program) {
  std::vector<bool> needed(program.vars.size());
  for (const VarId id : program.outputs) needed[id.index()] = true;
  for (auto node = program.nodes.rbegin(); node != program.nodes.rend(); ++node) {
    if (std::ranges::none_of(node->out, [&](VarId id) { return needed[id.index()]; })) continue;
    for (const VarId id : node->in) needed[id.index()] = true;
  }
  return needed;
}

std::string signature(const Program& program, const Node& node) {
  std::ostringstream out;
  out << node.op->name << '(';
  for (size_t i = 0; i < node.in.size(); ++i)
    out << (i ? ", " : "") << program.var(node.in[i]).type;
  out << ')';
  return out.str();
}

}  // namespace argosy

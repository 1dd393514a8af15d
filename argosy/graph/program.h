#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/source_loc.h"
#include "argosy/graph/op.h"

namespace argosy {

enum class VarKind : uint8_t {
  input,  // fed with each batch
  rows,   // rows of a table, fetched for each batch; has a gradient
  param,  // has a gradient and a rule that updates it
  state,  // kept between steps without a gradient, such as running means
  temp,   // computed by a node
};
const char* name(VarKind kind);

enum class Phase : uint8_t { forward, backward };

struct VarId {
  int32_t i = -1;
  auto operator<=>(const VarId&) const = default;
  size_t index() const { return static_cast<size_t>(i); }
  explicit operator bool() const { return i >= 0; }
};

struct VarDesc {
  std::string name = {};  // empty for most temps
  VarType type = {};
  VarKind kind = VarKind::temp;
  std::string init =
      {};  // of param, state, rows: "uniform(-0.1, 0.1)", as ps/initializer.h reads it
  std::string from =
      {};             // of an input that is no plain column of the data: see nn/layers.h, embedding
  SourceLoc at = {};  // where it was first asked for
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<VarId> in, out;
  Attrs attrs;
  Phase phase = Phase::forward;
  SourceLoc at;  // the caller's line, or the line of a parsed text
};

/// Trainable variable and its gradient: what minimize() hands to transpile().
struct VarGrad {
  VarId var, grad;
  friend bool operator==(const VarGrad&, const VarGrad&) = default;
};

/// After a step, `state` takes the value of `next`.
struct StateUpdate {
  VarId state, next;
  friend bool operator==(const StateUpdate&, const StateUpdate&) = default;
};

/// A pure function (inputs, rows, params, states) -> outputs, as a straight line of nodes in SSA
/// form. It has no side effects and is a plain value: copy, print, parse, compare.
struct Program {
  std::vector<VarDesc> vars;
  std::vector<Node> nodes;
  std::vector<VarId> outputs;
  std::vector<VarGrad> grads;
  std::vector<StateUpdate> updates;

  const VarDesc& var(VarId id) const { return vars[id.index()]; }
  /// "%12", or "%12 loss" if it has a name.
  std::string label(VarId id) const;
  VarId find(std::string_view name) const;  // an invalid id if absent

  /// docs/formats/program-text.md describes it; parse(text()) gives the same program.
  std::string text() const;
  /// Throws ConfigError with source:line.
  static Program parse(std::string_view text, std::string_view source = "program");
  /// Graphviz.
  std::string dot() const;

  /// The part that `outputs` need, without gradients and updates, renumbered; names stay.
  Program pruned(std::vector<VarId> outputs) const;
  /// This program in inference mode: every node that has is_test gets is_test=1.
  Program for_inference(std::vector<VarId> outputs) const;

  friend bool operator==(const Program& a, const Program& b) { return a.text() == b.text(); }
};

/// By variable: whether the outputs depend on it.
std::vector<bool> needed_variables(const Program& program);

/// "linear(f32[-1,13], f32[13,1])", for messages.
std::string signature(const Program& program, const Node& node);

}  // namespace argosy

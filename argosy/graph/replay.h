#pragma once

#include <span>
#include <vector>

#include "argosy/graph/builder.h"

namespace argosy {

/// Records a program's forward part into a builder, one variable after the other.
class Replay {
 public:
  Replay(const Program& program, Builder& g);

  bool at_end() const { return next_ == program_.vars.size(); }
  VarId next() const { return {static_cast<int32_t>(next_)}; }
  /// The node that computes next(); null for a variable from outside.
  const Node* node() const { return maker_[next_]; }

  /// Records it as it was: a variable from outside, or all results of its node.
  void record();
  /// Replaces it by `var`.
  void record_as(Var var);
  /// Leaves it out.
  void pass_over() { ++next_; }

  Var operator[](VarId id) const { return now_[id.index()]; }
  std::vector<Var> of(std::span<const VarId> ids) const;
  std::vector<VarId> now() const;  // by variable of the program

 private:
  const Program& program_;
  Builder& g_;
  std::vector<const Node*> maker_;  // by variable
  std::vector<Var> now_;            // by variable
  size_t next_ = 0;
};

/// Carries the states' updates over to a program that is recorded again.
void replay_updates(const Program& program, const Replay& replay, Builder& g);

}  // namespace argosy

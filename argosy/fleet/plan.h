#pragma once

#include <string>
#include <vector>

#include "argosy/graph/program.h"
#include "argosy/ps/table.h"

namespace argosy {

/// How parameters are updated; every field is a text of ps/ (rule.h, schedule.h, gradient.h).
struct Optimizer {
  std::string rule = "sgd";
  std::string learning_rate = "0.01";
  std::string regularizer = {};  // "", l1(x), l2(x)
  /// "", value(x) or value(low, high): each element; norm(x): each parameter's gradient;
  /// global_norm(x): all of a worker's gradients together.
  std::string clip = {};
};

/// Ties a variable of the worker program to what it becomes after a step: a parameter to its
/// gradient and its table, a state to its next value.
struct Edge {
  VarId var, value;  // value: the gradient, or a state's next value
  VarKind kind = VarKind::param;
  uint32_t table = 0;  // of a parameter
};

/// A pure program, its edges, and the tables that hold its parameters: the same bytes in every
/// process of a job.
struct Plan {
  Program worker;
  std::vector<Edge> edges;
  std::vector<TableSpec> tables;
  std::vector<VarDesc> states;
  std::string clip;  // what the worker does before a push: norm(x) or global_norm(x)
  /// The program, then the tables and which gradient goes to which.
  std::string text() const;
};

/// The program must hold gradients (Builder::backward). Throws ConfigError for a text of the
/// optimizer that does not parse.
Plan make_plan(Program program, const Optimizer& optimizer, uint64_t seed);

}  // namespace argosy

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "argosy/data/layout.h"
#include "argosy/graph/program.h"
#include "argosy/ps/specs.h"

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

/// Settings of a single table or parameter that differ from the defaults.
struct TableOptions {
  std::optional<std::string> rule = {}, learning_rate = {},
                             regularizer = {};  // instead of the optimizer's
  // For tables only:
  std::string entry = {};  // ps/entry.h
  uint64_t size = 0;       // ids of this size and above are refused by the reader; 0: any will do
  bool track_unseen = false;
  std::string store = {};  // where rows are, as in TableSpec; empty: as usual
};
using TablesOptions = std::map<std::string, TableOptions, std::less<>>;  // by table name

/// Ties a variable of the worker program to its result in a step: a parameter or a table's rows to
/// the gradient, a state to its next value.
struct Edge {
  VarId var, value;  // value: the gradient, or a state's next value
  VarKind kind = VarKind::param;
  uint32_t target = 0;  // by kind: a number in Plan::parameters, Plan::tables or Plan::states
};

/// The reader's layout for a program, and the key set of a batch that each table uses.
struct ProgramLayout {
  BatchLayout layout;
  std::map<std::string, size_t> key_sets;  // by table
};
/// Covers the inputs that the program's outputs depend on. Throws ConfigError.
ProgramLayout layout_of(const Program& program);

/// A pure program, its edges, and what they change: the same bytes in every process of a job.
struct Plan {
  Program worker;
  std::vector<Edge> edges;
  std::vector<ps::ParameterSpec> parameters;
  std::vector<ps::TableSpec> tables;
  std::vector<VarDesc> states;
  BatchLayout layout;            // what readers make for the worker
  std::vector<size_t> key_sets;  // by table: which of a batch's it is looked up by
  std::string clip;              // applied by the worker before a push: norm(x) or global_norm(x)
  uint64_t seed = 0;             // of first values
  /// The program, then parameters and tables, and which gradient goes to which.
  std::string text() const;
};

/// The program must hold gradients (Builder::backward). Throws ConfigError for a text of the
/// optimizer that does not parse, and for options of a table that the program does not have.
Plan make_plan(Program program, const Optimizer& optimizer, uint64_t seed,
               const TablesOptions& tables = {});

}  // namespace argosy

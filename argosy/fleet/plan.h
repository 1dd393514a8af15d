#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "argosy/data/layout.h"
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

/// What makes one table, or one parameter, different from the others.
struct TableOptions {
  std::optional<std::string> rule = {}, learning_rate = {},
                             regularizer = {};  // instead of the optimizer's
  // Of sparse tables:
  std::string entry = {};  // ps/entry.h
  uint64_t size = 0;       // ids of this size and above are refused by the reader; 0: any will do
  bool track_unseen = false;
};
using TablesOptions = std::map<std::string, TableOptions, std::less<>>;  // by table name

/// Ties a variable of the worker program to what it becomes after a step: a parameter or the rows
/// of a table to their gradient, a state to its next value.
struct Edge {
  VarId var, value;  // value: the gradient, or a state's next value
  VarKind kind = VarKind::param;
  uint32_t target = 0;  // a number in Plan::tables, or of a state in Plan::states
};

/// What a reader has to make for a program, and which of a batch's key sets each table takes.
struct ProgramLayout {
  BatchLayout layout;
  std::map<std::string, size_t> key_sets;  // by table
};
/// Of the inputs that its outputs depend on. Throws ConfigError.
ProgramLayout layout_of(const Program& program);

/// A pure program, its edges, and the tables that hold its parameters: the same bytes in every
/// process of a job.
struct Plan {
  Program worker;
  std::vector<Edge> edges;
  std::vector<TableSpec> tables;
  std::vector<VarDesc> states;
  BatchLayout layout;            // what readers make for the worker
  std::vector<size_t> key_sets;  // by table: which of a batch's a sparse one is looked up by
  std::string clip;              // what the worker does before a push: norm(x) or global_norm(x)
  uint64_t seed = 0;             // of first values
  /// The program, then the tables and which gradient goes to which.
  std::string text() const;
};

/// The program must hold gradients (Builder::backward). Throws ConfigError for a text of the
/// optimizer that does not parse, and for options of a table that the program does not have.
Plan make_plan(Program program, const Optimizer& optimizer, uint64_t seed,
               const TablesOptions& tables = {});

}  // namespace argosy

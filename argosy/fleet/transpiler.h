#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/fleet/communicator.h"
#include "argosy/fleet/plan.h"
#include "argosy/fleet/role.h"
#include "argosy/fleet/serve.h"
#include "argosy/graph/builder.h"
#include "argosy/ps/placement.h"

// Training over parameter servers in the words of Paddle's transpiler. Nothing is rewritten: a
// trainer runs the program as it is, and what it sends and receives stands beside it.
namespace argosy {

/// A parameter or a table of rows, and its gradient, by name.
struct ParamGrad {
  std::string param, grad;
};

/// What minimize() adds to a program: a rule for each parameter.
struct OptimizeOps {
  Plan program;
  std::vector<std::string> lines;  // "adam w1 w1@GRAD lr 0.001", one for each parameter
};

struct Minimized {
  OptimizeOps optimize_ops;
  std::vector<ParamGrad> params_grads;
};

struct MinimizeOptions {
  TablesOptions tables = {};
  uint64_t seed = 0;  // of first values
};

/// auto [optimize_ops, params_grads] = minimize(g, loss, {.rule = "sgd"}): appends the gradients
/// of the loss, which becomes an output. Throws as make_plan does.
Minimized minimize(Builder& g, Var loss, const Optimizer& optimizer,
                   const MinimizeOptions& options = {}, SourceLoc at = SourceLoc::current());

struct TranspilerConfig {
  bool slice_var_up = true;                 // false: every parameter stays whole
  std::string split_method = "RoundRobin";  // or HashName
  size_t min_block_size = 8192;             // floats, from 1; Paddle takes none below 8192
};
/// Throws ConfigError.
PlacementOptions placement_options(const TranspilerConfig& config);

/// What one trainer runs: connect_servers and make_communicator take its parts.
struct TrainerProgram {
  Plan plan;
  Placement placement;
  Role role;          // its number, and all servers
  Strategy strategy;  // sync or async
  std::string text() const;
};

/// What one server holds, and for how many trainers.
struct PserverProgram {
  Placement placement;
  Role role;
  Strategy strategy;
  std::string text() const;
};

/// The first values of what one server holds. There is nothing to run: a server fills its tables
/// when it makes them, rows when they are first seen.
struct StartupProgram {
  Endpoint endpoint;
  std::vector<TableSpec> tables;
  std::string text() const;
};

/// Splits a program for trainers and servers. Everything throws ConfigError with the value that is
/// wrong and what was expected; so do the get_ functions before transpile().
class DistributeTranspiler {
 public:
  static constexpr std::string_view kPservers = "127.0.0.1:6174";

  explicit DistributeTranspiler(const TranspilerConfig& config = {});

  /// params_grads: what minimize() gave. pservers: endpoints separated by commas, the same list in
  /// every process.
  void transpile(const OptimizeOps& optimize_ops, std::span<const ParamGrad> params_grads,
                 int trainer_id, std::string_view pservers = kPservers, int trainers = 1,
                 bool sync_mode = true);
  /// As trainer 0.
  void transpile(const OptimizeOps& optimize_ops, std::span<const ParamGrad> params_grads,
                 std::string_view pservers, int trainers = 1) {
    transpile(optimize_ops, params_grads, 0, pservers, trainers);
  }
  void transpile(int trainer_id, Plan program, std::string_view pservers = kPservers,
                 int trainers = 1, bool sync_mode = true);

  const TrainerProgram& get_trainer_program() const;
  PserverProgram get_pserver_program(std::string_view endpoint) const;
  StartupProgram get_startup_program(std::string_view endpoint,
                                     const PserverProgram& pserver_program) const;

 private:
  PlacementOptions options_;
  std::optional<TrainerProgram> trainer_;
};

/// Serves until every trainer has left, as serve() does; the strategy is the program's.
void run(Env& env, const PserverProgram& program, ServeOptions options = {});

/// The parts of the texts above, for servers that have no address yet. `names`: what to call each
/// server.
std::string trainer_text(const Plan& plan, const Placement& placement, const Strategy& strategy,
                         int trainers, std::span<const std::string> names);
std::string pserver_text(const Placement& placement, uint32_t server, const Strategy& strategy,
                         int trainers);
/// Slots of every server's rows.
std::vector<size_t> slots_by_server(const Placement& placement);

}  // namespace argosy

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/graph/builder.h"
#include "argosy/modes/communicator.h"
#include "argosy/modes/serve.h"
#include "argosy/plan/plan.h"
#include "argosy/plan/role.h"
#include "argosy/ps/placement.h"

// Parameter-server training in the terms of Paddle's transpiler. No program is rewritten: a trainer
// runs it unchanged, and its traffic is described beside it.
namespace argosy {

/// A parameter or a table of rows, and its gradient, by name.
struct ParamGrad {
  std::string param, grad;
};

/// The update rules, one per parameter, that minimize() adds to a program.
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
ps::PlacementOptions placement_options(const TranspilerConfig& config);

/// The program of one trainer, for connect_servers and make_communicator.
struct TrainerProgram {
  Plan plan;
  ps::Placement placement;
  Role role;          // its number, and all servers
  Strategy strategy;  // sync or async
  std::string text() const;
};

/// The part of the model on one server, and the number of trainers it serves.
struct PserverProgram {
  ps::Placement placement;
  Role role;
  Strategy strategy;
  std::string text() const;
};

/// The initial values of one server's part. There is nothing to run: a server initializes slices
/// when it makes them, and rows when they are first seen.
struct StartupProgram {
  Endpoint endpoint;
  std::vector<ps::ParameterSpec> slices;
  std::vector<ps::TableSpec> tables;
  std::string text() const;
};

/// Splits a program for trainers and servers. All functions throw ConfigError with the wrong value
/// and what was expected; the get_ functions also before transpile().
class DistributeTranspiler {
 public:
  static constexpr std::string_view kPservers = "127.0.0.1:6174";

  explicit DistributeTranspiler(const TranspilerConfig& config = {});

  /// params_grads: what minimize() gave. pservers: endpoints separated by commas, the same list in
  /// every process.
  void transpile(const OptimizeOps& optimize_ops, std::span<const ParamGrad> params_grads,
                 int trainer_id, std::string_view pservers = kPservers, int trainers = 1,
                 bool sync_mode = true);
  /// For trainer 0.
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
  ps::PlacementOptions options_;
  std::optional<TrainerProgram> trainer_;
};

/// Serves until every trainer has left, as serve() does; the strategy is the program's.
void run(Env& env, const PserverProgram& program, ServeOptions options = {});

/// The parts of the texts above, for servers that have no address yet. `names`: what to call each
/// server.
std::string trainer_text(const Plan& plan, const ps::Placement& placement, const Strategy& strategy,
                         int trainers, std::span<const std::string> names);
std::string pserver_text(const ps::Placement& placement, uint32_t server, const Strategy& strategy,
                         int trainers);
/// Slots of every server's rows.
std::vector<size_t> slots_by_server(const ps::Placement& placement);

}  // namespace argosy

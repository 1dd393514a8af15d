#include "argosy/job/transpiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "argosy/base/error.h"
#include "argosy/job/job.h"
#include "argosy/modes/mode.h"

namespace argosy {
namespace {

std::string grad_name(const std::string& param) {
  return param + std::string(Mode{}.pushed_ending());
}

std::vector<std::string> texts_of(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> texts;
  texts.reserve(endpoints.size());
  for (const Endpoint& endpoint : endpoints) texts.push_back(endpoint.text());
  return texts;
}

/// "w1[0..8192]".
std::string slice_text(const std::string& name, const ps::Slice& slice) {
  return fmt::format("{}[{}..{}]", name, slice.begin, slice.end);
}

/// The rule and what else happens to a gradient on a server.
template <class Spec>
std::string rule_text(const Spec& spec) {
  std::string text = fmt::format("rule=\"{}\" lr=\"{}\"", spec.rule, spec.learning_rate);
  if (!spec.regularizer.empty()) text += fmt::format(" regularizer=\"{}\"", spec.regularizer);
  if (!spec.clip.empty()) text += fmt::format(" clip=\"{}\"", spec.clip);
  return text;
}

/// Like rule_text, with the table's entry.
std::string rows_text(const ps::TableSpec& spec) {
  return rule_text(spec) + (spec.entry.empty() ? "" : fmt::format(" entry=\"{}\"", spec.entry));
}

std::string slots_text(size_t slots) {
  return fmt::format("{} of {} slots", slots, ps::Placement::kSlots);
}

/// Placement of all parameters and tables, one "VERB PART ARROW SERVER" per part. `ending` follows
/// their names.
void add_routes(std::string& out, const char* verb, const char* arrow, std::string_view ending,
                const ps::Placement& placement, std::span<const std::string> names) {
  auto line = std::back_inserter(out);
  for (const ps::Slice& slice : placement.slices)
    fmt::format_to(
        line, "{} {} {} {}\n", verb,
        slice_text(fmt::format("{}{}", placement.parameters[slice.parameter].name, ending), slice),
        arrow, names[slice.server]);
  const std::vector<size_t> slots = slots_by_server(placement);
  for (const ps::TableSpec& spec : placement.tables)
    for (uint32_t server = 0; server < placement.servers; ++server)
      fmt::format_to(line, "{} {}{} rows in {} {} {}\n", verb, spec.name, ending,
                     slots_text(slots[server]), arrow, names[server]);
}

/// Calls use(spec) for every parameter and table, in the order of the program.
template <class Use>
void each_trained(const Plan& plan, const Use& use) {
  for (const Edge& edge : plan.edges) {
    if (edge.kind == VarKind::param) use(plan.parameters[edge.target]);
    if (edge.kind == VarKind::rows) use(plan.tables[edge.target]);
  }
}

/// Checks that the pairs are exactly those minimize() gave.
void check_pairs(const Plan& plan, std::span<const ParamGrad> pairs) {
  std::vector<std::string> names;
  each_trained(plan, [&](const auto& spec) { names.push_back(spec.name); });
  for (const ParamGrad& pair : pairs) {
    check<ConfigError>(std::ranges::find(names, pair.param) != names.end(), "params_grads names '",
                       pair.param, "', which the program does not train");
    check<ConfigError>(pair.grad == grad_name(pair.param), "params_grads: the gradient of '",
                       pair.param, "' is '", pair.grad, "', expected '", grad_name(pair.param),
                       "'");
    check<ConfigError>(std::ranges::count(pairs, pair.param, &ParamGrad::param) == 1,
                       "params_grads names '", pair.param, "' more than once");
  }
  for (const std::string& name : names)
    check<ConfigError>(std::ranges::find(pairs, name, &ParamGrad::param) != pairs.end(),
                       "params_grads has no '", name, "', expected all that minimize gave");
}

}  // namespace

Minimized minimize(Builder& g, Var loss, const Optimizer& optimizer, const MinimizeOptions& options,
                   SourceLoc at) {
  g.output(loss);
  g.backward(loss, at);
  Minimized result;
  Plan& plan = result.optimize_ops.program;
  plan = make_plan(g.program(), optimizer, options.seed, options.tables);
  each_trained(plan, [&](const auto& spec) {
    result.params_grads.push_back({spec.name, grad_name(spec.name)});
    std::string line = fmt::format("{} {} {} lr {}", spec.rule, spec.name, grad_name(spec.name),
                                   spec.learning_rate);
    if (!spec.regularizer.empty()) line += " regularizer " + spec.regularizer;
    if (!optimizer.clip.empty()) line += " clip " + optimizer.clip;
    result.optimize_ops.lines.push_back(std::move(line));
  });
  return result;
}

ps::PlacementOptions placement_options(const TranspilerConfig& config) {
  check<ConfigError>(config.split_method == "RoundRobin" || config.split_method == "HashName",
                     "split_method '", config.split_method, "', expected RoundRobin or HashName");
  check<ConfigError>(config.min_block_size > 0,
                     "min_block_size is 0, expected at least 1 float in a block");
  return {.min_block = config.min_block_size,
          .slice = config.slice_var_up,
          .dispatch = config.split_method == "HashName" ? "hash_name" : "round_robin"};
}

DistributeTranspiler::DistributeTranspiler(const TranspilerConfig& config)
    : options_(placement_options(config)) {}

void DistributeTranspiler::transpile(const OptimizeOps& optimize_ops,
                                     std::span<const ParamGrad> params_grads, int trainer_id,
                                     std::string_view pservers, int trainers, bool sync_mode) {
  check_pairs(optimize_ops.program, params_grads);
  transpile(trainer_id, optimize_ops.program, pservers, trainers, sync_mode);
}

void DistributeTranspiler::transpile(int trainer_id, Plan program, std::string_view pservers,
                                     int trainers, bool sync_mode) {
  check<ConfigError>(!pservers.empty(), "pservers is '', expected endpoints such as ", kPservers,
                     ", separated by commas");
  std::vector<Endpoint> servers = parse_endpoints(pservers);
  check<ConfigError>(trainers > 0, "trainers is ", trainers, ", expected at least 1");
  check<ConfigError>(trainer_id >= 0 && trainer_id < trainers, "trainer_id is ", trainer_id,
                     ", expected 0 to ", trainers - 1, " for ", trainers, " trainers");
  const Strategy strategy{.mode = sync_mode ? "sync" : "async"};
  ps::Placement placement =
      placement_of(program, strategy, static_cast<uint32_t>(servers.size()), options_);
  trainer_ = TrainerProgram{
      .plan = std::move(program),
      .placement = std::move(placement),
      .role = user_defined_role(RoleKind::worker, trainer_id, trainers, std::move(servers)),
      .strategy = strategy};
}

const TrainerProgram& DistributeTranspiler::get_trainer_program() const {
  check<ConfigError>(trainer_.has_value(), "there are no programs yet: transpile comes first");
  return *trainer_;
}

PserverProgram DistributeTranspiler::get_pserver_program(std::string_view endpoint) const {
  const TrainerProgram& trainer = get_trainer_program();
  const std::vector<Endpoint>& servers = trainer.role.servers;
  const auto found = std::ranges::find(servers, parse_endpoint(endpoint));
  check<ConfigError>(found != servers.end(), "pserver endpoint '", endpoint, "', expected one of ",
                     fmt::format("{}", fmt::join(texts_of(servers), ", ")));
  return {.placement = trainer.placement,
          .role = user_defined_role(RoleKind::server, static_cast<int>(found - servers.begin()),
                                    trainer.role.worker_num, servers),
          .strategy = trainer.strategy};
}

StartupProgram DistributeTranspiler::get_startup_program(
    std::string_view endpoint, const PserverProgram& pserver_program) const {
  const PserverProgram own = get_pserver_program(endpoint);
  const std::string other = pserver_program.role.current_endpoint().value_or(Endpoint{}).text();
  check<ConfigError>(own.role.index == pserver_program.role.index &&
                         own.placement.hash() == pserver_program.placement.hash(),
                     "startup program of '", endpoint, "': the pserver program is that of '", other,
                     "' or of another transpile");
  const auto index = static_cast<uint32_t>(own.role.index);
  return {.endpoint = own.role.servers[index],
          .slices = own.placement.slices_of(index),
          .tables = own.placement.tables};
}

void run(Env& env, const PserverProgram& program, ServeOptions options) {
  const Job job(env, with_handed_down(program.role, process_environment()), {.out = options.out});
  options.strategy = program.strategy;
  serve(job, program.placement, std::move(options));
}

std::vector<size_t> slots_by_server(const ps::Placement& placement) {
  std::vector<size_t> slots(placement.servers);
  for (const uint16_t owner : placement.owners) ++slots[owner];
  return slots;
}

std::string trainer_text(const Plan& plan, const ps::Placement& placement, const Strategy& strategy,
                         int trainers, std::span<const std::string> names) {
  std::string out = plan.worker.text();
  auto line = std::back_inserter(out);
  if (!plan.clip.empty()) fmt::format_to(line, "clip \"{}\" on the trainer\n", plan.clip);
  const Mode& chosen = mode(strategy.mode);
  add_routes(out, "send", "->", chosen.pushed_ending(), placement, names);
  if (chosen.sync) fmt::format_to(line, "send_barrier of {} trainers\n", trainers);
  add_routes(out, "recv", "<-", "", placement, names);
  for (const Edge& edge : plan.edges)
    if (edge.kind == VarKind::state)
      fmt::format_to(line, "keep %{} -> {}\n", edge.value.i, plan.worker.var(edge.var).name);
  for (size_t i = 0; i < plan.parameters.size(); ++i)
    fmt::format_to(line, "parameter {} {} {} floats {}\n", i, plan.parameters[i].name,
                   plan.parameters[i].elements, rule_text(plan.parameters[i]));
  for (size_t i = 0; i < plan.tables.size(); ++i)
    fmt::format_to(line, "table {} {} rows of {} floats by key set {} {}\n", i, plan.tables[i].name,
                   plan.tables[i].dim, plan.key_sets[i], rows_text(plan.tables[i]));
  return out;
}

std::string pserver_text(const ps::Placement& placement, uint32_t server, const Strategy& strategy,
                         int trainers) {
  std::string out = fmt::format("listen_and_serv fanin {} {}\n", trainers, strategy.mode);
  auto line = std::back_inserter(out);
  for (const ps::Slice& slice : placement.slices) {
    if (slice.server != server) continue;
    const ps::ParameterSpec& spec = placement.parameters[slice.parameter];
    fmt::format_to(line, "block {} of {} floats {}\n", slice_text(spec.name, slice), spec.elements,
                   rule_text(spec));
  }
  const size_t slots = slots_by_server(placement)[server];
  for (const ps::TableSpec& spec : placement.tables)
    fmt::format_to(line, "table {} rows of {} floats in {} {}{}\n", spec.name, spec.dim,
                   slots_text(slots), rows_text(spec), spec.track_unseen ? " track_unseen" : "");
  return out;
}

std::string TrainerProgram::text() const {
  const std::vector<std::string> names = texts_of(role.servers);
  return fmt::format("trainer {} of {} {} pservers {}\n", role.index, role.worker_num,
                     strategy.mode, fmt::join(names, ",")) +
         trainer_text(plan, placement, strategy, role.worker_num, names);
}

std::string PserverProgram::text() const {
  return fmt::format("pserver {} of {} at {}\n", role.index, role.servers.size(),
                     role.current_endpoint().value_or(Endpoint{}).text()) +
         pserver_text(placement, static_cast<uint32_t>(role.index), strategy, role.worker_num);
}

std::string StartupProgram::text() const {
  std::string out = fmt::format("startup of {}\n", endpoint.text());
  auto line = std::back_inserter(out);
  for (const ps::ParameterSpec& spec : slices)
    fmt::format_to(line, "init {}[{}..{}] of {} floats init=\"{}\" seed={}\n", spec.name,
                   spec.first, spec.first + spec.elements, spec.of, spec.init, spec.seed);
  for (const ps::TableSpec& spec : tables)
    fmt::format_to(line, "init {} rows of {} floats when first seen init=\"{}\" seed={}\n",
                   spec.name, spec.dim, spec.init, spec.seed);
  return out;
}

}  // namespace argosy

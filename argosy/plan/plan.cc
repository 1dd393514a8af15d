#include "argosy/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/ps/entry.h"
#include "argosy/ps/gradient.h"
#include "argosy/ps/initializer.h"
#include "argosy/ps/rule.h"
#include "argosy/ps/schedule.h"

namespace argosy {
namespace {

bool clips_on_worker(const std::string& clip) {
  if (clip.empty()) return false;
  const Call call(clip);
  if (call.name() == "value") return false;
  check<ConfigError>(call.name() == "norm" || call.name() == "global_norm", "clip '", clip,
                     "', expected value(x), norm(x) or global_norm(x)");
  call.expect("clip", 1, {"limit"});
  check<ConfigError>(call.number(0, "limit") > 0, "clip '", clip, "': the limit must be positive");
  return true;
}

/// The fields that parameter and table specs share.
template <class Spec>
Spec spec_of(const VarDesc& desc, const Optimizer& optimizer, const TableOptions& own,
             uint64_t seed) {
  Spec spec;
  spec.name = desc.name;
  spec.rule = own.rule.value_or(optimizer.rule);
  if (!desc.init.empty()) spec.init = desc.init;
  spec.learning_rate = own.learning_rate.value_or(optimizer.learning_rate);
  spec.regularizer = own.regularizer.value_or(optimizer.regularizer);
  spec.clip = optimizer.clip;
  spec.seed = seed;
  // Reject texts that do not parse now, before any process starts to train.
  ps::make_rule(spec.rule);
  static_cast<void>(ps::Schedule(spec.learning_rate));
  static_cast<void>(ps::GradientPolicy(spec.regularizer, spec.clip));
  static_cast<void>(ps::Initializer(spec.init));
  return spec;
}

/// "rule=... lr=...", and what else happens to a gradient.
template <class Spec>
std::string update_text(const Spec& spec) {
  std::string text = fmt::format(" rule=\"{}\" lr=\"{}\"", spec.rule, spec.learning_rate);
  if (!spec.regularizer.empty()) text += fmt::format(" regularizer=\"{}\"", spec.regularizer);
  if (!spec.clip.empty()) text += fmt::format(" clip=\"{}\"", spec.clip);
  return text;
}

ps::ParameterSpec parameter_of(const VarDesc& desc, const Optimizer& optimizer,
                               const TableOptions& own, uint64_t seed) {
  auto spec = spec_of<ps::ParameterSpec>(desc, optimizer, own, seed);
  spec.elements = static_cast<size_t>(desc.type.shape.numel());
  if (desc.type.shape.rank() > 1)
    spec.unit = spec.elements / static_cast<size_t>(desc.type.shape[0]);
  return spec;
}

ps::TableSpec table_of(const VarDesc& desc, const Optimizer& optimizer, const TableOptions& own,
                       uint64_t seed) {
  auto spec = spec_of<ps::TableSpec>(desc, optimizer, own, seed);
  spec.dim = static_cast<size_t>(desc.type.shape[1]);
  spec.entry = own.entry;
  spec.track_unseen = own.track_unseen;
  if (!own.store.empty()) spec.store = own.store;
  return spec;
}

/// By variable: whether it is an input that a log loss uses as label, perhaps reshaped or cast.
/// Labels computed in other ways, as by smoothing, may be anything from 0 to 1.
std::vector<bool> labels_of_log_loss(const Program& program) {
  std::vector<bool> labels(program.vars.size());
  for (auto node = program.nodes.rbegin(); node != program.nodes.rend(); ++node) {
    const std::string_view op = node->op->name;
    if (node->phase == Phase::forward && (op == "log_loss" || op == "sigmoid_cross_entropy"))
      labels[node->in[1].index()] = true;
    const bool same_values = node->op->trait == OpTrait::view || op == "cast";
    if (same_values && labels[node->out[0].index()]) labels[node->in[0].index()] = true;
  }
  return labels;
}

}  // namespace

ProgramLayout layout_of(const Program& program) {
  ProgramLayout result;
  BatchLayout& layout = result.layout;
  std::map<std::string, std::string> lookups;  // by table: the slots of all its lookups
  std::vector<std::string> tables;             // by index
  std::map<std::string, size_t> offsets;       // by what they belong to: a number of an index
  const std::vector<bool> needed = needed_variables(program);
  const std::vector<bool> labels = labels_of_log_loss(program);
  for (size_t i = 0; i < program.vars.size(); ++i) {
    const VarDesc& desc = program.vars[i];
    if (desc.kind != VarKind::input || !needed[i]) continue;
    if (desc.from.empty()) {
      layout.columns.push_back({.input = desc.name,
                                .shape = desc.type.shape,
                                .dtype = desc.type.dtype,
                                .binary = labels[i]});
      continue;
    }
    const Call from(desc.from);
    std::vector<std::string> words = from.words();
    const bool known =
        from.name() == "index" || from.name() == "flat_index" || from.name() == "offsets";
    check<ConfigError>(known && words.size() >= 2, desc.at, ": input '", desc.name, "' is from '",
                       desc.from, "', expected index, flat_index or offsets(table, slots)");
    from.expect("source", words.size(), {"padding"});
    const std::string arguments = desc.from.substr(from.name().size());
    if (from.name() == "offsets") {
      const auto flat = offsets.find(arguments);
      check<ConfigError>(flat != offsets.end(), desc.at, ": input '", desc.name, "' is from '",
                         desc.from, "', but there is no flat_index", arguments);
      layout.indices[flat->second].offsets = desc.name;
      continue;
    }
    if (from.name() == "flat_index") offsets.emplace(arguments, layout.indices.size());
    const std::string table = words[0];
    IndexFeed feed{.index = desc.name, .slots = {words.begin() + 1, words.end()}};
    if (const std::string padding = from.word("padding", ""); !padding.empty())
      feed.padding = std::stoull(padding);
    lookups[table] += desc.from.substr(desc.from.find(',')) + from.name();
    tables.push_back(table);
    layout.indices.push_back(std::move(feed));
  }
  std::map<std::string, size_t> sets;
  for (const auto& [table, text] : lookups)
    result.key_sets[table] = sets.emplace(text, sets.size()).first->second;
  for (size_t i = 0; i < tables.size(); ++i) layout.indices[i].key_set = result.key_sets[tables[i]];
  layout.key_sets = sets.size();
  return result;
}

namespace {

/// Adds the side columns that readers count for the tables' entries.
void add_key_columns(Plan& plan) {
  std::vector<KeyColumnsFeed> columns(plan.layout.key_sets);
  bool any = false;
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    const ps::Entry entry(plan.tables[i].entry);
    const bool scores = entry.kind() == ps::Entry::Kind::show_click;
    if (!scores && entry.kind() != ps::Entry::Kind::count_filter) continue;
    KeyColumnsFeed& own = columns[plan.key_sets[i]];
    any = own.counts = true;
    if (entry.show().empty()) continue;
    check<ConfigError>(own.show.empty() || (own.show == entry.show() && own.click == entry.click()),
                       "table '", plan.tables[i].name, "': its entry ", plan.tables[i].entry,
                       " counts by other inputs than show_click(", own.show, ", ", own.click,
                       ") of a table that is looked up by the same ids");
    own.show = entry.show();
    own.click = entry.click();
    for (const std::string& input : {own.show, own.click})
      if (std::ranges::find(plan.layout.columns, input, &ColumnFeed::input) ==
          plan.layout.columns.end())
        plan.layout.columns.push_back({.input = input, .shape = {-1, 1}, .dtype = DType::f32});
  }
  if (any) plan.layout.key_columns = std::move(columns);
}

}  // namespace

Plan make_plan(Program program, const Optimizer& optimizer, uint64_t seed,
               const TablesOptions& tables) {
  Plan plan;
  plan.seed = seed;
  Optimizer on_server = optimizer;
  if (clips_on_worker(optimizer.clip)) plan.clip = std::exchange(on_server.clip, "");
  auto [layout, key_sets] = layout_of(program);
  plan.layout = std::move(layout);

  for (const VarGrad& pair : program.grads) {
    const VarDesc& desc = program.var(pair.var);
    const auto found = tables.find(desc.name);
    const TableOptions own = found != tables.end() ? found->second : TableOptions{};
    const bool is_table = desc.kind == VarKind::rows;
    const size_t target = is_table ? plan.tables.size() : plan.parameters.size();
    plan.edges.push_back({pair.var, pair.grad, desc.kind, static_cast<uint32_t>(target)});
    if (is_table) {
      check<ConfigError>(key_sets.contains(desc.name), desc.at, ": rows '", desc.name,
                         "' are looked up by no input");
      plan.tables.push_back(table_of(desc, on_server, own, seed));
      plan.key_sets.push_back(key_sets[desc.name]);
    } else {
      plan.parameters.push_back(parameter_of(desc, on_server, own, seed));
    }
  }
  add_key_columns(plan);
  const auto planned = [&](const std::string& name) {
    return std::ranges::find(plan.parameters, name, &ps::ParameterSpec::name) !=
               plan.parameters.end() ||
           std::ranges::find(plan.tables, name, &ps::TableSpec::name) != plan.tables.end();
  };
  for (const VarDesc& desc : program.vars) {
    if (desc.kind == VarKind::state) plan.states.push_back(desc);
    check<ConfigError>(
        (desc.kind != VarKind::param && desc.kind != VarKind::rows) || planned(desc.name),
        desc.kind == VarKind::rows ? "table '" : "parameter '", desc.name,
        "' has no gradient: the loss does not depend on it");
  }
  for (const StateUpdate& update : program.updates) {
    const auto state =
        std::ranges::find(plan.states, program.var(update.state).name, &VarDesc::name);
    plan.edges.push_back({update.state, update.next, VarKind::state,
                          static_cast<uint32_t>(state - plan.states.begin())});
  }
  for (const auto& [name, options] : tables)
    check<ConfigError>(planned(name), "options for a table '", name,
                       "', which the model does not have");
  plan.worker = std::move(program);
  return plan;
}

std::string Plan::text() const {
  std::string out = worker.text();
  auto line = std::back_inserter(out);
  for (size_t i = 0; i < parameters.size(); ++i)
    fmt::format_to(line, "parameter {} {} {} floats{}\n", i, parameters[i].name,
                   parameters[i].elements, update_text(parameters[i]));
  for (size_t i = 0; i < tables.size(); ++i) {
    const ps::TableSpec& t = tables[i];
    fmt::format_to(line, "table {} {} rows of {} floats init=\"{}\"{}", i, t.name, t.dim, t.init,
                   update_text(t));
    if (!t.entry.empty()) fmt::format_to(line, " entry=\"{}\"", t.entry);
    out += '\n';
  }
  if (!clip.empty()) fmt::format_to(line, "clip \"{}\" on the worker\n", clip);
  for (const Edge& edge : edges) {
    if (edge.kind == VarKind::state)
      fmt::format_to(line, "keep %{} -> {}\n", edge.value.i, worker.var(edge.var).name);
    else
      fmt::format_to(line, "send %{} -> {} {}\n", edge.value.i,
                     edge.kind == VarKind::rows ? "table" : "parameter", edge.target);
  }
  return out;
}

}  // namespace argosy

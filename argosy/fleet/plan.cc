#include "argosy/fleet/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
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

TableSpec table_of(const VarDesc& desc, const Optimizer& optimizer, bool clips_on_worker,
                   uint64_t seed) {
  return {.name = desc.name,
          .rule = optimizer.rule,
          .init = desc.init.empty() ? "zeros" : desc.init,
          .learning_rate = optimizer.learning_rate,
          .regularizer = optimizer.regularizer,
          .clip = clips_on_worker ? "" : optimizer.clip,
          .seed = seed};
}

}  // namespace

ProgramLayout layout_of(const Program& program) {
  ProgramLayout result;
  BatchLayout& layout = result.layout;
  std::map<std::string, std::string> lookups;  // by table: the slots of all its lookups
  std::vector<std::string> tables;             // by index
  std::map<std::string, size_t> offsets;       // by what they belong to: a number of an index
  const std::vector<bool> needed = needed_variables(program);
  for (size_t i = 0; i < program.vars.size(); ++i) {
    const VarDesc& desc = program.vars[i];
    if (desc.kind != VarKind::input || !needed[i]) continue;
    if (desc.from.empty()) {
      layout.columns.push_back(
          {.input = desc.name, .shape = desc.type.shape, .dtype = desc.type.dtype});
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

Plan make_plan(Program program, const Optimizer& optimizer, uint64_t seed,
               const TablesOptions& tables) {
  Plan plan;
  plan.seed = seed;
  const bool on_worker = clips_on_worker(optimizer.clip);
  plan.clip = on_worker ? optimizer.clip : "";
  auto [layout, key_sets] = layout_of(program);
  plan.layout = std::move(layout);

  for (const VarGrad& pair : program.grads) {
    const VarDesc& desc = program.var(pair.var);
    TableSpec spec = table_of(desc, optimizer, on_worker, seed);
    if (const auto own = tables.find(desc.name); own != tables.end()) {
      spec.rule = own->second.rule.value_or(spec.rule);
      spec.learning_rate = own->second.learning_rate.value_or(spec.learning_rate);
      spec.regularizer = own->second.regularizer.value_or(spec.regularizer);
      spec.entry = own->second.entry;
      spec.track_unseen = own->second.track_unseen;
    }
    if (desc.kind == VarKind::rows) {
      spec.dim = static_cast<size_t>(desc.type.shape[1]);
      check<ConfigError>(key_sets.contains(desc.name), desc.at, ": rows '", desc.name,
                         "' are looked up by no input");
    } else {
      spec.dim = spec.elements = static_cast<size_t>(desc.type.shape.numel());
      if (desc.type.shape.rank() > 1)
        spec.unit = spec.elements / static_cast<size_t>(desc.type.shape[0]);
    }
    // What does not parse is refused here, before any process starts to train.
    make_rule(spec.rule);
    static_cast<void>(Schedule(spec.learning_rate));
    static_cast<void>(GradientPolicy(spec.regularizer, spec.clip));
    static_cast<void>(Initializer(spec.init));
    plan.edges.push_back(
        {pair.var, pair.grad, desc.kind, static_cast<uint32_t>(plan.tables.size())});
    plan.key_sets.push_back(desc.kind == VarKind::rows ? key_sets[desc.name] : 0);
    plan.tables.push_back(std::move(spec));
  }
  const auto planned = [&](const std::string& name) {
    return std::ranges::find(plan.tables, name, &TableSpec::name) != plan.tables.end();
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
  for (size_t i = 0; i < tables.size(); ++i) {
    const TableSpec& t = tables[i];
    if (t.elements > 0)
      fmt::format_to(line, "table {} {} {} floats in blocks of {}", i, t.name, t.elements, t.dim);
    else
      fmt::format_to(line, "table {} {} rows of {} floats init=\"{}\"", i, t.name, t.dim, t.init);
    fmt::format_to(line, " rule=\"{}\" lr=\"{}\"", t.rule, t.learning_rate);
    if (!t.regularizer.empty()) fmt::format_to(line, " regularizer=\"{}\"", t.regularizer);
    if (!t.clip.empty()) fmt::format_to(line, " clip=\"{}\"", t.clip);
    if (!t.entry.empty()) fmt::format_to(line, " entry=\"{}\"", t.entry);
    out += '\n';
  }
  if (!clip.empty()) fmt::format_to(line, "clip \"{}\" on the worker\n", clip);
  for (const Edge& edge : edges) {
    if (edge.kind == VarKind::state)
      fmt::format_to(line, "keep %{} -> {}\n", edge.value.i, worker.var(edge.var).name);
    else
      fmt::format_to(line, "send %{} -> table {}\n", edge.value.i, edge.target);
  }
  return out;
}

}  // namespace argosy

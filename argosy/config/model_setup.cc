#include "argosy/config/model_setup.h"

#include <algorithm>

#include "argosy/config/network.h"
#include "argosy/ps/initializer.h"
#include "argosy/zoo/model.h"

namespace argosy {
namespace {

constexpr int64_t kIds = 1000001;

Inputs declare_inputs(Builder& g, const Config& config, const Hyper& hyper) {
  Inputs in{.g = g, .slots = config.inputs.slots};
  if (config.inputs.dense_size > 0)
    in.dense = g.input(config.inputs.dense, {{Shape::kAny, config.inputs.dense_size}});
  in.label = g.input(config.inputs.label, {{Shape::kAny, 1}});
  in.rows.init = hyper.text("embedding_init", in.rows.init);
  if (!config.inputs.one_id) in.rows.pool = "sum";
  return in;
}

/// Names of a program's tables, and of variables that get no gradient.
struct Parts {
  std::vector<std::string> tables, idle;
};

Parts parts_of(const Program& program) {
  Parts parts;
  for (size_t i = 0; i < program.vars.size(); ++i) {
    const VarDesc& var = program.vars[i];
    if (var.kind != VarKind::rows && var.kind != VarKind::param) continue;
    if (var.kind == VarKind::rows) parts.tables.push_back(var.name);
    const VarId id{static_cast<int32_t>(i)};
    if (std::ranges::find(program.grads, id, &VarGrad::var) == program.grads.end())
      parts.idle.push_back(var.name);
  }
  return parts;
}

/// Records the model once, with its gradients.
Parts try_model(const Config& config, const Model& model) {
  Builder g;
  const ModelOutputs outputs = model(g);
  g.output(outputs.loss);
  g.backward(outputs.loss);
  Parts parts = parts_of(g.program());
  check<ConfigError>(parts.idle.empty(), config.path, ": parameter '",
                     parts.idle.empty() ? "" : parts.idle.front(), "' does not reach the loss");
  return parts;
}

/// size: of a table that does not say it itself.
TablesOptions make_tables(const Config& config, const std::vector<std::string>& names,
                          uint64_t size) {
  for (const auto& [name, keys] : config.tables) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::string near = nearest(name, names);
    fail<ConfigError>(config.path, ": tables.", name, ": the model has no such table",
                      near.empty() ? "" : ", did you mean " + near + "?");
  }
  TablesOptions tables;
  for (const std::string& name : names) {
    TableOptions& table = tables[name];
    table.size = size;
    const auto keys = config.tables.find(name);
    if (keys == config.tables.end()) continue;
    if (!keys->second.rule.empty()) table.rule = keys->second.rule;
    if (!keys->second.learning_rate.empty()) table.learning_rate = keys->second.learning_rate;
    if (keys->second.size > 0) table.size = static_cast<uint64_t>(keys->second.size);
    table.entry = keys->second.entry;
    table.track_unseen = keys->second.track_unseen;
    table.store = keys->second.store;
  }
  return tables;
}

const ModelPlugin& find_model(const std::vector<ModelPlugin>& models, const Config& config) {
  const auto model = std::ranges::find(models, config.model, &ModelPlugin::name);
  if (model != models.end()) return *model;
  const std::string near = nearest(config.model, model_names());
  std::string known;
  for (const std::string& name : model_names()) known += (known.empty() ? "" : ", ") + name;
  fail<ConfigError>(config.model_at, ": no model '", config.model, "'",
                    near.empty() ? "; there are " + known : ", did you mean " + near + "?");
}

/// Ids are below sparse_feature_number, unless a distributed embedding takes any.
uint64_t table_size(const Hyper& hyper) {
  const int64_t size = hyper.integer("sparse_feature_number", kIds, {.low = 0});
  return hyper.flag("distributed_embedding", false) ? 0 : static_cast<uint64_t>(size);
}

ModelSetup make_zoo_model(const Config& config) {
  const std::vector<ModelPlugin> models = builtin_models();
  const auto build = find_model(models, config).make;
  Hyper::Names asked = {"dense_input_dim", "sparse_inputs_slots"};  // config.inputs
  const Hyper recording = config.hyper.recording(asked);
  static_cast<void>(ps::Initializer(recording.text("embedding_init", "zeros")));
  const uint64_t size = table_size(recording);
  const Parts parts = try_model(
      config, [&](Builder& g) { return build(declare_inputs(g, config, recording), recording); });
  config.hyper.refuse_others(asked);
  return {.model =
              [config, build](Builder& g) {
                return build(declare_inputs(g, config, config.hyper), config.hyper);
              },
          .tables = make_tables(config, parts.tables, size)};
}

}  // namespace

ModelSetup make_model(const Config& config) {
  if (!config.model.empty()) return make_zoo_model(config);
  config.hyper.refuse_others({});
  Model model = network_model(config);
  const Parts parts = try_model(config, model);
  return {.model = std::move(model), .tables = make_tables(config, parts.tables, 0)};
}

}  // namespace argosy

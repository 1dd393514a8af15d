#include "argosy/config/network.h"

#include <algorithm>

#include "argosy/config/expression.h"
#include "argosy/config/network_scope.h"
#include "argosy/nn/layers.h"
#include "argosy/train/meter.h"

namespace argosy {
namespace {

using Kind = Expression::Kind;

/// A line of `network:` or `metrics:`, called by the last part of the setting's name.
struct Line {
  Setting setting;
  Expression expression;
};

struct Network {
  Config config;
  std::vector<Line> lines;
  Line loss;
  std::vector<Line> metrics;
};

/// A meter over predictions and labels, auc(sigmoid(logit), label, buckets=1000), or a mean.
void add_metric(NetworkScope& scope, const Line& line, ModelOutputs& outputs) {
  const std::string name(line.setting.key());
  const Expression& call = line.expression;
  const std::vector<std::string> meters = meter_names();
  if (call.kind != Kind::call || std::ranges::find(meters, call.text) == meters.end()) {
    outputs.metrics.emplace_back(name, scope.build(line.setting, line.expression));
    return;
  }
  std::vector<Var> inputs;
  std::string settings;
  for (const Expression& argument : call.items) {
    if (argument.key.empty())
      inputs.push_back(scope.build(line.setting, argument));
    else
      settings += (settings.empty() ? "" : ", ") + argument.key + "=" + argument.text;
  }
  if (inputs.size() != 2 && inputs.size() != 3)
    fail_in(line.setting, call.column, "meter ", call.text,
            " takes predictions, labels and perhaps groups, got ", inputs.size());
  MeterSpec meter{.name = name,
                  .meter = settings.empty() ? call.text : call.text + "(" + settings + ")",
                  .prediction = inputs[0],
                  .label = inputs[1]};
  if (inputs.size() == 3) meter.group = inputs[2];
  try {
    static_cast<void>(make_meter(meter.meter));
  } catch (const ConfigError& e) {
    fail_in(line.setting, call.column, e.what());
  }
  outputs.meters.push_back(std::move(meter));
}

/// Adds an exported model's prediction: the line `predict`, or the scores that the loss takes.
void add_prediction(NetworkScope& scope, const Network& network, ModelOutputs& outputs) {
  static const Expression predict{.kind = Kind::name, .text = "predict"};
  const auto line = std::ranges::find(network.lines, "predict",
                                      [](const Line& line) { return line.setting.key(); });
  if (line != network.lines.end()) {
    outputs.predictions.emplace_back("predict", scope.build(line->setting, predict));
    return;
  }
  const Expression& loss = network.loss.expression;
  const bool logistic = loss.text == "logistic_loss", softmax = loss.text == "softmax_loss";
  if (loss.kind != Kind::call || (!logistic && !softmax)) return;
  const Var scores = scope.build(network.loss.setting, loss.items[0]);
  outputs.predictions.emplace_back(
      "predict", logistic ? nn::sigmoid(scores, scope.at()) : nn::softmax(scores, scope.at()));
}

ModelOutputs build_network(const Network& network, Builder& g) {
  NetworkScope scope(g, network.config);
  for (const Line& line : network.lines)
    scope.define(line.setting, scope.build(line.setting, line.expression));

  ModelOutputs outputs{.loss = scope.build(network.loss.setting, network.loss.expression)};
  if (outputs.loss.shape().numel() != 1)
    fail_at(network.loss.setting, "must be one number, as a mean is; got ", outputs.loss.type());
  for (const Line& line : network.metrics) add_metric(scope, line, outputs);
  add_prediction(scope, network, outputs);
  return outputs;
}

std::vector<Line> parse_lines(const Setting& map) {
  std::vector<Line> lines;
  if (!map.given()) return lines;
  lines.reserve(map.items.size());
  for (const Setting& setting : expect_map(map).items)
    lines.push_back({setting, parse_expression(setting)});
  return lines;
}

}  // namespace

Model network_model(const Config& config) {
  check<ConfigError>(config.loss.given(), config.path,
                     ": a network needs a loss, as loss: logistic_loss(logit, label)");
  Network network{.config = config,
                  .lines = parse_lines(config.network),
                  .loss = {config.loss, parse_expression(config.loss)},
                  .metrics = parse_lines(config.metrics)};
  return [network = std::move(network)](Builder& g) { return build_network(network, g); };
}

}  // namespace argosy

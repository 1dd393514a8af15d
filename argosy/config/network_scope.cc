#include "argosy/config/network_scope.h"

#include <algorithm>

#include "argosy/base/interned.h"

namespace argosy {
namespace {

using Kind = Expression::Kind;

/// Layers, and ops with examples: the others are gradients of them.
std::vector<std::string> callable_names() {
  std::vector<std::string> names;
  for (const NetworkLayer& layer : network_layers()) names.emplace_back(layer.name);
  for (const OpDef* op : all_ops())
    if (op->examples != nullptr) names.push_back(op->name);
  return names;
}

}  // namespace

std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return near.empty() ? "" : ", did you mean " + near + "?";
}

NetworkScope::NetworkScope(Builder& g, const Config& config) : g_(g), config_(config) {
  const InputKeys& inputs = config.inputs;
  if (inputs.dense_size > 0)
    vars_.emplace_back("dense", g.input(inputs.dense, {{Shape::kAny, inputs.dense_size}}));
  vars_.emplace_back("label", g.input(inputs.label, {{Shape::kAny, 1}}));
}

SourceLoc NetworkScope::at() const { return {interned(line_->at.source), line_->at.line}; }

Var NetworkScope::build(const Setting& line, const Expression& expression) {
  line_ = &line;
  depth_ = 0;
  const LocationScope location(g_, at());
  return value(expression);
}

void NetworkScope::define(const Setting& line, Var var) {
  const std::string name(line.key());
  if (name == "slots" || find(name) != nullptr) fail_at(line, "'", name, "' is an input already");
  vars_.emplace_back(name, var);
}

const Var* NetworkScope::find(std::string_view name) const {
  const auto known = std::ranges::find(vars_, name, &std::pair<std::string, Var>::first);
  return known == vars_.end() ? nullptr : &known->second;
}

Var NetworkScope::value(const Expression& expression) {
  if (expression.kind == Kind::name) return named(expression);
  if (expression.kind != Kind::call)
    fail_in(*line_, expression.column, "expected a variable or a call, found ",
            expression.kind == Kind::list ? "a list" : "'" + expression.text + "'");
  if (const auto built = built_.find(&expression); built != built_.end()) return built->second;
  ++depth_;
  const Var result = called(expression);
  --depth_;
  built_.emplace(&expression, result);
  return result;
}

Var NetworkScope::named(const Expression& expression) const {
  if (const Var* const var = find(expression.text)) return *var;
  if (expression.text == "slots")
    fail_in(*line_, expression.column, "slots are ids, only embedding takes them");
  std::vector<std::string> names;
  names.reserve(vars_.size());
  for (const auto& [name, var] : vars_) names.push_back(name);
  fail_in(*line_, expression.column, "no variable '", expression.text, "' so far",
          suggestion(expression.text, names));
}

Var NetworkScope::called(const Expression& expression) {
  CallSite site(*this, expression);
  Var result;
  const auto layer = std::ranges::find(network_layers(), expression.text, &NetworkLayer::name);
  if (layer != network_layers().end()) {
    result = layer->build(site);
  } else {
    const std::vector<std::string> names = callable_names();
    if (std::ranges::find(names, expression.text) == names.end())
      fail_in(*line_, expression.column, "no layer or op '", expression.text, "'",
              suggestion(expression.text, names));
    Attrs attrs = site.attributes(find_op(expression.text));
    result = g_.apply_all(expression.text, site.vars(), std::move(attrs), at())[0];
  }
  site.expect_no_others();
  return result;
}

std::string NetworkScope::new_layer_name(const std::string& callee) {
  const std::string line(line_->key());
  const std::string base = depth_ == 1 ? line : line + "." + callee;
  std::string name = base;
  for (int i = 1; !layers_.insert(name).second; ++i) name = base + "." + std::to_string(i);
  return name;
}

}  // namespace argosy

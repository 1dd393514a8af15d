#include <algorithm>

#include "argosy/config/network_scope.h"

namespace argosy {
namespace {

using Kind = Expression::Kind;

/// The names of the attributes that an op's examples use, which are all it has.
std::vector<std::string> attribute_names(const OpDef& op) {
  std::set<std::string> names;
  if (op.examples != nullptr)
    for (const OpExample& example : op.examples())
      for (const auto& [name, value] : example.attrs) names.insert(name);
  return {names.begin(), names.end()};
}

}  // namespace

Var CallSite::var(size_t position, const char* what) {
  size_t unnamed = 0;
  for (const Expression& argument : call_.items)
    if (argument.key.empty() && unnamed++ == position) {
      positions_ = std::max(positions_, position + 1);
      return scope_.value(argument);
    }
  fail_in(scope_.line(), call_.column, callee(), " needs ", what);
}

std::vector<Var> CallSite::vars() {
  std::vector<Var> result;
  for (const Expression& argument : call_.items)
    if (argument.key.empty()) result.push_back(scope_.value(argument));
  positions_ = result.size();
  if (result.empty()) fail_in(scope_.line(), call_.column, callee(), " of nothing");
  return result;
}

std::vector<std::string> CallSite::slots() {
  const std::vector<std::string>& known = scope_.config().inputs.slots;
  if (call_.items.empty() || !call_.items[0].key.empty())
    fail_in(scope_.line(), call_.column, callee(), " needs slots, all of them or [C1, C2]");
  positions_ = 1;
  const Expression& value = call_.items[0];
  if (value.kind == Kind::name && value.text == "slots") return known;
  const std::vector<Expression> names =
      value.kind == Kind::list ? value.items : std::vector<Expression>{value};
  std::vector<std::string> slots;
  slots.reserve(names.size());
  for (const Expression& slot : names) {
    if (std::ranges::find(known, slot.text) == known.end())
      fail_in(scope_.line(), slot.column, "no slot '", slot.text, "'",
              suggestion(slot.text, known));
    slots.push_back(slot.text);
  }
  return slots;
}

const Expression* CallSite::named(const char* name) {
  asked_.insert(name);
  const auto argument = std::ranges::find(call_.items, name, &Expression::key);
  return argument == call_.items.end() ? nullptr : &*argument;
}

/// A value that is written out, as a setting: it is read and refused like one, with its column.
Setting CallSite::literal(const std::string& name, const Expression& value) const {
  Setting setting{.kind = value.kind == Kind::list ? Setting::Kind::list : Setting::Kind::scalar,
                  .name = scope_.line().name + ": " + callee() + ": " + name,
                  .text = value.text,
                  .at = scope_.line().at};
  if (value.kind == Kind::call)
    fail_in(scope_.line(), value.column, name, " must be written out, '", value.text,
            "(...)' is computed");
  if (setting.at.line > 0)
    setting.at = {.source = setting.at.source + ":" + std::to_string(setting.at.line),
                  .line = value.column};
  setting.items.reserve(value.items.size());
  for (const Expression& item : value.items) setting.items.push_back(literal(name, item));
  return setting;
}

int64_t CallSite::integer(const char* name, std::optional<int64_t> otherwise,
                          const Limits& limits) {
  const Expression* const value = named(name);
  if (value != nullptr) return read_integer(literal(name, *value), limits);
  if (!otherwise)
    fail_in(scope_.line(), call_.column, callee(), " needs ", name, "=", wanted_integer(limits));
  return *otherwise;
}

double CallSite::real(const char* name, double otherwise, const Limits& limits) {
  const Expression* const value = named(name);
  return value == nullptr ? otherwise : read_real(literal(name, *value), limits);
}

bool CallSite::flag(const char* name, bool otherwise) {
  const Expression* const value = named(name);
  return value == nullptr ? otherwise : read_flag(literal(name, *value));
}

std::string CallSite::text(const char* name, std::optional<std::string> otherwise) {
  const Expression* const value = named(name);
  if (value != nullptr) return read_text(literal(name, *value));
  if (!otherwise) fail_in(scope_.line(), call_.column, callee(), " needs ", name, "=...");
  return *otherwise;
}

std::vector<int64_t> CallSite::integers(const char* name, const Limits& limits) {
  const Expression* const value = named(name);
  if (value == nullptr) fail_in(scope_.line(), call_.column, callee(), " needs ", name, "=[...]");
  return read_integers(literal(name, *value), limits);
}

std::string CallSite::layer_name() {
  const Expression* const value = named("name");
  return value != nullptr ? read_text(literal("name", *value)) : scope_.new_layer_name(callee());
}

const TableKeys& CallSite::table(const std::string& name) {
  const auto& tables = scope_.config().tables;
  const auto found = tables.find(name);
  if (found == tables.end()) {
    std::vector<std::string> names;
    names.reserve(tables.size());
    for (const auto& [table, keys] : tables) names.push_back(table);
    fail_in(scope_.line(), call_.column, "no table '", name, "' in tables",
            suggestion(name, names));
  }
  if (found->second.dim == 0)
    fail_in(scope_.line(), call_.column, "tables.", name, " needs dim, the floats of a row");
  return found->second;
}

Attrs CallSite::attributes(const OpDef& op) {
  const std::vector<std::string> known = attribute_names(op);
  Attrs attrs;
  for (const Expression& value : call_.items) {
    const std::string& name = value.key;
    if (name.empty()) continue;
    if (std::ranges::find(known, name) == known.end())
      fail_in(scope_.line(), value.key_column, op.name, " has no attribute '", name, "'",
              suggestion(name, known));
    const Setting setting = literal(name, value);
    if (value.kind == Kind::list)
      attrs.set(name, read_integers(setting));
    else if (value.kind == Kind::number && value.text.find_first_of(".eE") == std::string::npos)
      attrs.set(name, read_integer(setting));
    else if (value.kind == Kind::number)
      attrs.set(name, read_real(setting));
    else if (value.text == "True" || value.text == "False")
      attrs.set(name, int64_t{value.text == "True"});
    else
      attrs.set(name, value.text);
    asked_.insert(name);
  }
  return attrs;
}

void CallSite::expect_no_others() const {
  size_t unnamed = 0;
  for (const Expression& argument : call_.items) {
    const std::string& name = argument.key;
    if (name.empty() && ++unnamed > positions_)
      fail_in(scope_.line(), argument.key_column, callee(), " takes ", positions_,
              " values without a name, this is one more");
    if (!name.empty() && !asked_.contains(name))
      fail_in(scope_.line(), argument.key_column, callee(), " has no argument '", name, "'",
              suggestion(name, {asked_.begin(), asked_.end()}));
  }
}

}  // namespace argosy

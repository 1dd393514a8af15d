#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/config/config.h"
#include "argosy/config/expression.h"
#include "argosy/graph/builder.h"

namespace argosy {

/// The scope in which a network is built: its inputs and the lines so far.
class NetworkScope {
 public:
  /// Declares the inputs `dense` and `label`. The configuration outlives the scope.
  NetworkScope(Builder& g, const Config& config);

  /// The value of an expression of this line; the same object again gives the same variable.
  Var build(const Setting& line, const Expression& expression);
  /// Binds the line's name to the variable from now on.
  void define(const Setting& line, Var var);

  // For calls of the line that is being built:
  Builder& g() { return g_; }
  const Config& config() const { return config_; }
  const Setting& line() const { return *line_; }
  SourceLoc at() const;  // the line's, for nodes
  Var value(const Expression& expression);
  /// The outermost layer of a line has the line's name, others add theirs: logit.mlp.
  std::string new_layer_name(const std::string& callee);

 private:
  const Var* find(std::string_view name) const;
  Var named(const Expression& expression) const;
  Var called(const Expression& expression);

  Builder& g_;
  const Config& config_;
  const Setting* line_ = nullptr;
  std::vector<std::pair<std::string, Var>> vars_;
  std::map<const Expression*, Var> built_;
  std::set<std::string> layers_;  // names that layers have got
  int depth_ = 0;                 // of calls
};

/// One call while it is built: hands out its arguments, each of which throws ConfigError with its
/// column if it is missing or wrong.
class CallSite {
 public:
  CallSite(NetworkScope& scope, const Expression& call) : scope_(scope), call_(call) {}

  NetworkScope& scope() { return scope_; }
  const std::string& callee() const { return call_.text; }

  // Without a name:
  Var var(size_t position, const char* what);
  std::vector<Var> vars();           // all of them, at least one
  std::vector<std::string> slots();  // the first: slots, C1 or [C1, C2]
  // By name; without a default they must be there:
  int64_t integer(const char* name, std::optional<int64_t> otherwise, const Limits& limits);
  double real(const char* name, double otherwise, const Limits& limits);
  bool flag(const char* name, bool otherwise);
  std::string text(const char* name, std::optional<std::string> otherwise);
  std::vector<int64_t> integers(const char* name, const Limits& limits);
  /// name=..., else one made from the line's. Layers of the same name share their parameters.
  std::string layer_name();
  /// A table of `tables:` with a dim.
  const TableKeys& table(const std::string& name);
  /// Every argument with a name as an attribute of an op.
  Attrs attributes(const OpDef& op);

  /// Throws for the first argument that was not asked for.
  void expect_no_others() const;

 private:
  const Expression* named(const char* name);
  Setting literal(const std::string& name, const Expression& value) const;

  NetworkScope& scope_;
  const Expression& call_;
  std::set<std::string> asked_;
  size_t positions_ = 0;
};

/// A function other than an op that a network can call.
struct NetworkLayer {
  const char* name;
  Var (*build)(CallSite& site);
};
const std::vector<NetworkLayer>& network_layers();

/// ", did you mean X?", or nothing.
std::string suggestion(std::string_view name, const std::vector<std::string>& known);

}  // namespace argosy

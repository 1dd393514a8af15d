#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "argosy/graph/program.h"

namespace argosy {

class Builder;

/// A variable of a program being built: an input, a parameter or the result of a node.
struct Var {
  Builder* g = nullptr;
  VarId id;

  explicit operator bool() const { return g != nullptr; }
  const VarType& type() const;
  const Shape& shape() const { return type().shape; }
  const Tensor& value() const;  // eager only
};

/// The arguments of an op's gradient function, which adds nodes to g.
struct GradCtx {
  Builder& g;
  std::span<const Var> in, out;
  std::span<const Var> dout;  // gradient of each output; null if none flows back
  const Attrs& attrs;
  const std::vector<bool>& needs;  // needs[i]: the gradient of in[i] is asked for
};

/// The randomness of one run: same seed and step, same bits.
struct RunSeed {
  uint64_t seed = 0, step = 0;
  uint64_t for_node(size_t node) const { return mix(mix(seed + 1) ^ mix(step * 2 + 1)) + node; }
};

/// Records a Program. An eager one also runs each node the moment it is recorded, so the same
/// model code is a static graph or a dynamic one. Not thread-safe.
class Builder {
 public:
  /// Gives the value of an input, param, rows or state when an eager model asks for it.
  using Resolve = std::function<Tensor(const VarDesc&)>;

  struct EagerOptions {
    RunSeed seed = {};
    SumOverRanks* ranks = nullptr;  // the others that run the program; outlives it
  };

  Builder() = default;
  explicit Builder(Resolve resolve) : Builder(std::move(resolve), EagerOptions{}) {}
  Builder(Resolve resolve, EagerOptions options);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  bool eager() const { return resolve_ != nullptr; }

  /// From now on the nodes of this op are recorded with this setting.
  void always(std::string op, std::string name, Attr value);

  /// A variable that comes from outside. Asking again for a name gives the same variable, if the
  /// type agrees.
  Var variable(VarDesc desc, SourceLoc at = SourceLoc::current());
  Var input(std::string name, VarType type, SourceLoc at = SourceLoc::current()) {
    return variable({.name = std::move(name), .type = type, .kind = VarKind::input}, at);
  }
  Var param(std::string name, const Shape& shape, std::string init,
            SourceLoc at = SourceLoc::current()) {
    return variable({.name = std::move(name),
                     .type = {shape, DType::f32},
                     .kind = VarKind::param,
                     .init = std::move(init)},
                    at);
  }

  /// A variable without a name over this value; eager only.
  Var given(const Tensor& value);

  std::vector<Var> apply_all(std::string_view op, std::span<const Var> in, Attrs attrs = {},
                             SourceLoc at = SourceLoc::current());
  /// For the many ops with one result.
  Var apply(std::string_view op, std::initializer_list<Var> in, Attrs attrs = {},
            SourceLoc at = SourceLoc::current()) {
    return apply_all(op, std::span(in.begin(), in.size()), std::move(attrs), at)[0];
  }

  /// Gives a temp a name, by which outputs are found and texts are read.
  void name(Var var, std::string name);
  void output(Var var);
  void update(Var state, Var next);  // next is an output from now on

  /// Appends gradient nodes for every param and rows that the loss depends on; their gradients
  /// become outputs. The loss has one element. Once per builder.
  const std::vector<VarGrad>& backward(Var loss, SourceLoc at = SourceLoc::current());

  const Program& program() const { return program_; }
  const VarType& type(VarId id) const { return program_.var(id).type; }
  const Tensor& value(VarId id) const;  // eager only

 private:
  friend class LocationScope;

  void run(const Node& node, std::span<const VarType> types);

  Program program_;
  Phase phase_ = Phase::forward;
  SourceLoc location_;          // of the outermost open LocationScope
  Resolve resolve_;             // eager only
  EagerOptions options_;        // eager only
  std::vector<Tensor> values_;  // eager only, by variable
  struct Setting {
    std::string op, name;
    Attr value;
  };
  std::vector<Setting> always_;
};

/// While it lives, nodes are recorded as written at `at`: a layer that adds several nodes opens
/// one, so that messages name its caller. The outermost wins.
class LocationScope {
 public:
  LocationScope(Builder& g, const SourceLoc& at);
  ~LocationScope();
  LocationScope(const LocationScope&) = delete;
  LocationScope& operator=(const LocationScope&) = delete;

 private:
  Builder& g_;
  bool outermost_;
};

/// Throws DataError naming the node and the variable if a float output holds NaN or infinity.
void check_finite(const Program& program, const Node& node, std::span<Tensor* const> outputs);

/// A ConfigError's text with the op, its inputs' types and the place where it was recorded.
std::string describe_failure(const Program& program, const Node& node, const char* why);

}  // namespace argosy

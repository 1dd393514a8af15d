#pragma once

#include <gtest/gtest.h>

#include "argosy/base/denormals.h"
#include "argosy/graph/executor.h"
#include "argosy/ops/op_support.h"

/// The examples of ops as cases to run, with the gradients they lead to.
namespace argosy::conformance {

inline constexpr RunSeed kSeed{.seed = 17, .step = 3};

// ---- the loss ----

/// Each element its own weight, so that no two gradients are equal by chance.
template <class T>
T weight(int64_t salt, size_t i) {
  const RandomStream stream(41, static_cast<uint64_t>(salt));
  return static_cast<T>(2 * stream.uniform(i) - 1);
}

inline void infer_weighted_sum(const InferCtx& c) {
  ops::expect_float(c, 0);
  c.out = {{{1}, c.in[0].dtype}};
}

inline void run_weighted_sum(const RunCtx& c) {
  ops::by_float(c.in(0).dtype(), [&](auto total) {
    using T = decltype(total);
    const auto x = c.in(0).as<T>();
    for (size_t i = 0; i < x.size(); ++i) total += x[i] * weight<T>(c.attrs.integer("salt"), i);
    c.out(0).as<T>()[0] = total;
  });
}

inline std::vector<Var> grad_weighted_sum(const GradCtx& c) {
  return {c.g.apply("conformance_weights", {c.dout[0], c.in[0]}, c.attrs)};
}

inline void infer_weights(const InferCtx& c) { c.out = {c.in[1]}; }

inline void run_weights(const RunCtx& c) {  // (dout, x) -> dx
  ops::by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T d = c.in(0).as<T>()[0];
    auto dx = c.out(0).as<T>();
    for (size_t i = 0; i < dx.size(); ++i) dx[i] = d * weight<T>(c.attrs.integer("salt"), i);
  });
}

// ---- cases ----

/// Every op of argosy; the two above join the registry after it was listed.
inline const std::vector<const OpDef*>& tested_ops() {
  static const std::vector<const OpDef*> list = [] {
    std::vector<const OpDef*> all = all_ops();
    register_op({.name = "conformance_weighted_sum",
                 .infer = infer_weighted_sum,
                 .run = run_weighted_sum,
                 .grad = grad_weighted_sum});
    register_op(
        {.name = "conformance_weights", .inputs = 2, .infer = infer_weights, .run = run_weights});
    return all;
  }();
  return list;
}

inline std::vector<std::string> names_of_ops_with_examples() {
  std::vector<std::string> names;
  for (const OpDef* op : tested_ops())
    if (op->examples != nullptr) names.push_back(op->name);
  return names;
}

/// One example of one op.
struct Case {
  const OpDef* op;
  size_t number;
  OpExample example;

  std::string label() const { return op->name + ", example " + std::to_string(number); }
  bool any_float_input() const {
    return std::ranges::any_of(example.in, [](const Tensor& x) { return is_float(x.dtype()); });
  }
  bool differentiable() const { return op->grad != nullptr && any_float_input(); }
  bool is_batched(size_t input) const {
    return std::ranges::find(example.batched, static_cast<int>(input)) != example.batched.end();
  }
};

inline std::vector<Case> cases_of(const OpDef& op) {
  std::vector<Case> cases;
  if (op.examples == nullptr) return cases;
  for (OpExample& example : op.examples()) cases.push_back({&op, cases.size(), std::move(example)});
  return cases;
}

template <class To>
Tensor cast(const Tensor& x) {
  Tensor result = Tensor::uninitialized(x.shape(), dtype_of<To>());
  ops::by_type(x.dtype(), [&](auto zero) {
    const auto from = x.as<decltype(zero)>();
    auto to = result.as<To>();
    for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<To>(from[i]);
  });
  return result;
}

inline Case in_f32(Case c) {
  for (Tensor& x : c.example.in)
    if (is_float(x.dtype())) x = cast<float>(x);
  return c;
}

inline Case with_empty_batch(Case c) {
  for (size_t i = 0; i < c.example.in.size(); ++i) {
    if (!c.is_batched(i)) continue;
    Shape shape = c.example.in[i].shape();
    shape[0] = 0;
    c.example.in[i] = Tensor(shape, c.example.in[i].dtype());
  }
  return c;
}

// ---- recording and running a case ----

inline std::string input_name(size_t input) { return "x" + std::to_string(input); }

inline Feeds feeds_of(const Case& c) {
  Feeds feeds;
  for (size_t i = 0; i < c.example.in.size(); ++i) feeds[input_name(i)] = c.example.in[i];
  return feeds;
}

inline std::vector<VarType> types_of(const Case& c) {
  std::vector<VarType> types;
  for (const Tensor& x : c.example.in) types.push_back({x.shape(), x.dtype()});
  return types;
}

inline std::vector<VarType> types_with_open_batch(const Case& c) {
  std::vector<VarType> types = types_of(c);
  for (int input : c.example.batched) types.at(static_cast<size_t>(input)).shape[0] = Shape::kAny;
  return types;
}

inline constexpr int kAllFloats = -1;

/// The op and its loss. Inputs come first, so input i is variable i.
struct Recorded {
  std::vector<Var> out;
  Var loss;  // null where no gradient flows
};

/// Float inputs become params, which get gradients: all of them or only input `param`.
inline Recorded record(Builder& g, const Case& c, std::span<const VarType> types,
                       int param = kAllFloats) {
  std::vector<Var> in;
  for (size_t i = 0; i < types.size(); ++i) {
    const bool chosen = param == kAllFloats || static_cast<size_t>(param) == i;
    const bool trains = is_float(types[i].dtype) && chosen;
    in.push_back(
        g.variable({input_name(i), types[i], trains ? VarKind::param : VarKind::input, ""}));
  }
  Recorded result{.out = g.apply_all(c.op->name, in, c.example.attrs), .loss = {}};
  if (!c.differentiable() || !is_float(result.out[0].type().dtype)) return result;
  // Further results, such as a mask or running means, have no gradient; split's have.
  const size_t weighted = c.op->name == "split" ? result.out.size() : 1;
  for (size_t k = 0; k < weighted; ++k) {
    const Var part =
        g.apply("conformance_weighted_sum", {result.out[k]}, {{"salt", static_cast<int64_t>(k)}});
    result.loss = result.loss ? g.apply("add", {result.loss, part}) : part;
  }
  return result;
}

/// A case run eagerly, with gradients where it has some.
class EagerRun {
 public:
  explicit EagerRun(const Case& c, int param = kAllFloats)
      : g_([feeds = feeds_of(c)](const VarDesc& desc) { return feeds.at(desc.name); },
           {.seed = kSeed}) {
    const std::vector<VarType> types = types_of(c);
    recorded_ = record(g_, c, types, param);
    if (recorded_.loss) g_.backward(recorded_.loss);
  }

  size_t outputs() const { return recorded_.out.size(); }
  const Tensor& output(size_t i) const { return recorded_.out[i].value(); }
  const std::vector<VarGrad>& grads() const { return g_.program().grads; }
  const Tensor& value(VarId id) const { return g_.value(id); }
  const Program& program() const { return g_.program(); }

  /// Outputs, then gradients.
  std::vector<Tensor> results() const {
    std::vector<Tensor> all;
    for (Var var : recorded_.out) all.push_back(var.value());
    for (const VarGrad& grad : grads()) all.push_back(g_.value(grad.grad));
    return all;
  }

 private:
  Builder g_;
  Recorded recorded_;
};

/// One node of a run program, its inputs copied.
struct NodeTrial {
  const Node& node;
  uint64_t seed;
  std::vector<Tensor> in;
  std::vector<Tensor> expected;

  NodeTrial(const EagerRun& run, size_t n) : node(run.program().nodes[n]), seed(kSeed.for_node(n)) {
    for (VarId id : node.in) in.push_back(run.value(id).clone());
    for (VarId id : node.out) expected.push_back(run.value(id));
  }

  void run(std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) const {
    std::vector<Tensor*> in_pointers, out_pointers;
    for (Tensor& x : inputs) in_pointers.push_back(&x);
    for (Tensor& y : outputs) out_pointers.push_back(&y);
    const FlushDenormals flush;
    node.op->run({in_pointers, out_pointers, node.attrs, seed});
  }

  bool one_size() const {
    return std::ranges::all_of(in,
                               [&](const Tensor& x) { return x.numel() == expected[0].numel(); });
  }
};

/// f(trial) for every node of the case and its gradient, argosy's ops only.
template <class F>
void for_each_node(const Case& c, F f) {
  const EagerRun run(c);
  for (size_t n = 0; n < run.program().nodes.size(); ++n) {
    const NodeTrial trial(run, n);
    if (trial.node.op->name.starts_with("conformance_")) continue;
    SCOPED_TRACE(c.label() + ", node " + trial.node.op->name);
    f(trial);
  }
}

}  // namespace argosy::conformance

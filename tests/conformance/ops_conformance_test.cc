// What every op must satisfy, tried on the examples it carries: a new op costs no test code.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "argosy/base/denormals.h"
#include "argosy/graph/executor.h"
#include "argosy/ops/op_support.h"

namespace argosy {
namespace {

constexpr RunSeed kSeed{.seed = 17, .step = 3};

// ---- the loss ----

/// Each element its own weight, so that no two gradients are equal by chance.
template <class T>
T weight(int64_t salt, size_t i) {
  const RandomStream stream(41, static_cast<uint64_t>(salt));
  return static_cast<T>(2 * stream.uniform(i) - 1);
}

void infer_weighted_sum(const InferCtx& c) {
  ops::expect_float(c, 0);
  c.out = {{{1}, c.in[0].dtype}};
}

void run_weighted_sum(const RunCtx& c) {
  ops::by_float(c.in(0).dtype(), [&](auto total) {
    using T = decltype(total);
    const auto x = c.in(0).as<T>();
    for (size_t i = 0; i < x.size(); ++i) total += x[i] * weight<T>(c.attrs.integer("salt"), i);
    c.out(0).as<T>()[0] = total;
  });
}

std::vector<Var> grad_weighted_sum(const GradCtx& c) {
  return {c.g.apply("conformance_weights", {c.dout[0], c.in[0]}, c.attrs)};
}

void infer_weights(const InferCtx& c) { c.out = {c.in[1]}; }

void run_weights(const RunCtx& c) {  // (dout, x) -> dx
  ops::by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T d = c.in(0).as<T>()[0];
    auto dx = c.out(0).as<T>();
    for (size_t i = 0; i < dx.size(); ++i) dx[i] = d * weight<T>(c.attrs.integer("salt"), i);
  });
}

// ---- cases ----

/// Every op of argosy; the two above join the registry after it was listed.
const std::vector<const OpDef*>& tested_ops() {
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

std::vector<std::string> names_of_ops_with_examples() {
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

std::vector<Case> cases_of(const OpDef& op) {
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

Case in_f32(Case c) {
  for (Tensor& x : c.example.in)
    if (is_float(x.dtype())) x = cast<float>(x);
  return c;
}

Case with_empty_batch(Case c) {
  for (size_t i = 0; i < c.example.in.size(); ++i) {
    if (!c.is_batched(i)) continue;
    Shape shape = c.example.in[i].shape();
    shape[0] = 0;
    c.example.in[i] = Tensor(shape, c.example.in[i].dtype());
  }
  return c;
}

// ---- recording and running a case ----

std::string input_name(size_t input) { return "x" + std::to_string(input); }

Feeds feeds_of(const Case& c) {
  Feeds feeds;
  for (size_t i = 0; i < c.example.in.size(); ++i) feeds[input_name(i)] = c.example.in[i];
  return feeds;
}

std::vector<VarType> types_of(const Case& c) {
  std::vector<VarType> types;
  for (const Tensor& x : c.example.in) types.push_back({x.shape(), x.dtype()});
  return types;
}

std::vector<VarType> types_with_open_batch(const Case& c) {
  std::vector<VarType> types = types_of(c);
  for (int input : c.example.batched) types.at(static_cast<size_t>(input)).shape[0] = Shape::kAny;
  return types;
}

constexpr int kAllFloats = -1;

/// The op and its loss. Inputs come first, so input i is variable i.
struct Recorded {
  std::vector<Var> out;
  Var loss;  // null where no gradient flows
};

/// Float inputs become params, which get gradients: all of them or only input `param`.
Recorded record(Builder& g, const Case& c, std::span<const VarType> types, int param = kAllFloats) {
  std::vector<Var> in;
  for (size_t i = 0; i < types.size(); ++i) {
    const bool chosen = param == kAllFloats || static_cast<size_t>(param) == i;
    const bool trains = is_float(types[i].dtype) && chosen;
    in.push_back(
        g.variable({input_name(i), types[i], trains ? VarKind::param : VarKind::input, ""}));
  }
  Recorded result{.out = g.apply_all(c.op->name, in, c.example.attrs), .loss = {}};
  if (!c.differentiable() || !is_float(result.out[0].type().dtype)) return result;
  // Further results, such as a mask or running means, have no gradient; those of split have.
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

// ---- comparing ----

testing::AssertionResult same(const Tensor& expected, const Tensor& actual) {
  if (same_bits(expected, actual)) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure();
  if (expected.dtype() != actual.dtype() || expected.shape() != actual.shape())
    return failure << "expected " << expected.dtype() << expected.shape() << ", got "
                   << actual.dtype() << actual.shape();
  const size_t size = size_of(expected.dtype());
  size_t i = 0;
  while (std::memcmp(expected.data() + i * size, actual.data() + i * size, size) == 0) ++i;
  ops::by_type(expected.dtype(), [&](auto zero) {
    using T = decltype(zero);
    failure << "element " << i << " of " << expected.dtype() << expected.shape() << ": expected "
            << testing::PrintToString(expected.as<T>()[i]) << ", got "
            << testing::PrintToString(actual.as<T>()[i]);
  });
  return failure;
}

void expect_same_results(const std::vector<Tensor>& expected, const std::vector<Tensor>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(same(expected[i], actual[i])) << "in result " << i << " (outputs, then gradients)";
}

/// What infer says against these types; empty if it accepts them.
std::string refusal(const Case& c, std::span<const VarType> types) {
  std::vector<VarType> out;
  try {
    infer(*c.op, {types, c.example.attrs, out});
  } catch (const ConfigError& e) {
    return std::string("refused: ") + e.what();
  }
  return "";
}

class OpConformance : public testing::TestWithParam<std::string> {
 protected:
  const OpDef& op() const { return find_op(GetParam()); }
  std::vector<Case> cases() const { return cases_of(op()); }
};

// ---- the claims ----

TEST(Ops, EveryOpHasExamplesOrServesTheGradientOfOneThatHas) {
  std::set<std::string> reached;
  const auto note = [&](const Program& program) {
    for (const Node& node : program.nodes) reached.insert(node.op->name);
  };
  for (const OpDef* op : tested_ops()) {
    for (const Case& c : cases_of(*op)) {
      for (int param = kAllFloats; param < static_cast<int>(c.example.in.size()); ++param) {
        Builder g;
        const Recorded recorded = record(g, c, types_with_open_batch(c), param);
        if (recorded.loss) g.backward(recorded.loss);
        note(g.program());
      }
      note(EagerRun(c).program());
    }
  }
  for (const OpDef* op : tested_ops())
    EXPECT_TRUE(reached.contains(op->name)) << op->name << " is never run: give it examples";
}

TEST_P(OpConformance, GradientsMatchFiniteDifferences) {
  constexpr double kStep = 1e-5, kTolerance = 1e-6;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.label());
    if (!c.differentiable()) continue;
    Builder g;
    const Recorded recorded = record(g, c, types_with_open_batch(c));
    if (!recorded.loss) continue;
    g.output(recorded.loss);
    Executor forward(g.program());
    EXPECT_FALSE(g.backward(recorded.loss).empty()) << "it has a grad, but no input gets one";
    Executor both(g.program());
    const Feeds feeds = feeds_of(c);
    both.run(feeds, {}, kSeed);

    for (const VarGrad& grad : g.program().grads) {
      const std::string& name = g.program().var(grad.var).name;
      Feeds moved = feeds;
      moved[name] = feeds.at(name).clone();
      auto x = moved[name].as<double>();
      const auto loss_at = [&](size_t i, double value) {
        const double before = x[i];
        x[i] = value;
        forward.run(moved, {}, kSeed);
        x[i] = before;
        return forward.value(recorded.loss.id).as<double>()[0];
      };
      const auto analytic = both.value(grad.grad).as<double>();
      ASSERT_EQ(analytic.size(), x.size()) << "gradient of input " << grad.var.i;
      for (size_t i = 0; i < x.size(); ++i) {
        const double numeric = (loss_at(i, x[i] + kStep) - loss_at(i, x[i] - kStep)) / (2 * kStep);
        EXPECT_NEAR(analytic[i], numeric, kTolerance * (1 + std::abs(numeric)))
            << "gradient of input " << grad.var.i << ", element " << i;
      }
    }
  }
}

TEST_P(OpConformance, GradientsAreTheSameWhenOnlyOneIsAskedFor) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.label());
    const EagerRun all(c);
    for (const VarGrad& grad : all.grads()) {
      const EagerRun one(c, grad.var.i);
      ASSERT_EQ(one.grads().size(), 1U) << "of input " << grad.var.i;
      EXPECT_TRUE(same(all.value(grad.grad), one.value(one.grads()[0].grad)))
          << "gradient of input " << grad.var.i;
    }
  }
}

TEST_P(OpConformance, ShapesInferredAreTheShapesComputed) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.label());
    std::vector<VarType> open, actual;
    const std::vector<VarType> open_in = types_with_open_batch(c), actual_in = types_of(c);
    infer(*c.op, {open_in, c.example.attrs, open});
    infer(*c.op, {actual_in, c.example.attrs, actual});
    ASSERT_EQ(open.size(), actual.size());
    const EagerRun run(c);
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_TRUE(actual[i].shape.known()) << "output " << i << " is " << actual[i];
      EXPECT_EQ(open[i].dtype, actual[i].dtype) << "output " << i;
      EXPECT_EQ(open[i].shape.rank(), actual[i].shape.rank()) << "output " << i;
      EXPECT_TRUE(fits(actual[i].shape, open[i].shape))
          << "output " << i << " is " << actual[i] << ", with an open batch " << open[i];
      EXPECT_EQ(run.output(i).shape(), actual[i].shape) << "output " << i;
    }
    for (const VarGrad& grad : run.grads())
      EXPECT_EQ(run.value(grad.grad).shape(), c.example.in[grad.var.index()].shape())
          << "gradient of input " << grad.var.i;
  }
}

TEST_P(OpConformance, TextRoundTrip) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.label());
    Builder g;
    const Recorded recorded = record(g, c, types_with_open_batch(c));
    for (Var var : recorded.out) g.output(var);
    if (recorded.loss) g.backward(recorded.loss);
    const std::string text = g.program().text();
    EXPECT_EQ(Program::parse(text).text(), text);
  }
}

TEST_P(OpConformance, EagerEqualsStaticBitwise) {
  for (const Case& f64 : cases()) {
    const Case c = in_f32(f64);
    SCOPED_TRACE(c.label());
    const EagerRun eager(c);
    Builder g;
    const Recorded recorded = record(g, c, types_with_open_batch(c));
    if (recorded.loss) g.backward(recorded.loss);
    ASSERT_EQ(g.program().grads.size(), eager.grads().size());
    // With only gradients as outputs more memory is reused.
    for (const bool outputs_kept : {true, false}) {
      Program program = g.program();
      if (outputs_kept)
        for (Var var : recorded.out) program.outputs.push_back(var.id);
      if (program.outputs.empty()) continue;
      for (const bool fuse : {false, true}) {
        for (const bool reuse : {false, true}) {
          SCOPED_TRACE(testing::Message() << "fuse=" << fuse << " reuse=" << reuse);
          // Blocks smaller than the examples, so that chains really run in several.
          Executor executor(program, {.fuse = fuse, .reuse = reuse, .block = 3});
          for (int repeat = 0; repeat < 2; ++repeat) executor.run(feeds_of(c), {}, kSeed);
          for (size_t i = 0; outputs_kept && i < eager.outputs(); ++i)
            EXPECT_TRUE(same(eager.output(i), executor.value(recorded.out[i].id)))
                << "output " << i;
          for (size_t i = 0; i < eager.grads().size(); ++i)
            EXPECT_TRUE(
                same(eager.value(eager.grads()[i].grad), executor.value(program.grads[i].grad)))
                << "gradient of input " << program.grads[i].var.i;
        }
      }
    }
  }
}

TEST_P(OpConformance, EmptyBatch) {
  for (const Case& full : cases()) {
    if (full.example.batched.empty()) continue;
    const Case c = with_empty_batch(in_f32(full));
    SCOPED_TRACE(c.label());
    const EagerRun eager(c);
    for (size_t i = 0; i < eager.outputs(); ++i)
      EXPECT_TRUE(eager.output(i).shape().known()) << "output " << i;
    // Weights must survive a worker that had no samples.
    for (const VarGrad& grad : eager.grads()) {
      const auto values = eager.value(grad.grad).as<float>();
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_TRUE(std::isfinite(values[i]))
            << "gradient of input " << grad.var.i << ", element " << i << " is " << values[i];
    }

    Builder g;
    const Recorded recorded = record(g, c, types_with_open_batch(c));
    for (Var var : recorded.out) g.output(var);
    if (recorded.loss) g.backward(recorded.loss);
    Executor executor(g.program());
    executor.run(feeds_of(in_f32(full)), {}, kSeed);
    executor.run(feeds_of(c), {}, kSeed);  // planned anew for no samples
    for (size_t i = 0; i < eager.outputs(); ++i)
      EXPECT_TRUE(same(eager.output(i), executor.value(recorded.out[i].id))) << "output " << i;
  }
}

TEST_P(OpConformance, RefusesBadShapes) {
  size_t refused = 0, most_inputs = 0;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.label());
    most_inputs = std::max(most_inputs, c.example.in.size());
    EXPECT_EQ(refusal(c, types_of(c)), "");
    for (const std::vector<VarType>& types : c.example.refused) {
      ++refused;
      const std::string why = refusal(c, types);
      EXPECT_NE(why, "") << "refused entry " << &types - c.example.refused.data()
                         << " was accepted";
      EXPECT_EQ(why.find('\n'), std::string::npos) << "more than one line: " << why;
    }
    if (c.op->inputs < 0) {
      EXPECT_NE(refusal(c, {}), "") << "accepted no inputs";
      continue;
    }
    std::vector<VarType> types = types_of(c);
    types.push_back(types.back());
    EXPECT_NE(refusal(c, types), "") << "accepted " << types.size() << " inputs";
    types.resize(types.size() - 2);
    EXPECT_NE(refusal(c, types), "") << "accepted " << types.size() << " inputs";
  }
  EXPECT_TRUE(most_inputs < 2 || refused > 0)
      << GetParam() << " has several inputs and no example of refused ones";
}

TEST_P(OpConformance, SameBitsOnEveryInstructionSet) {
  // Their product is oneDNN's, which picks its instructions once per process.
  if (GetParam() == "matmul" || GetParam() == "linear" || GetParam() == "conv2d") return;
  for (const Case& f64 : cases()) {
    const Case c = in_f32(f64);
    SCOPED_TRACE(c.label());
    const std::vector<Tensor> best = EagerRun(c).results();
    for (const Isa cap : {Isa::baseline, Isa::avx2}) {
      SCOPED_TRACE(name(cap));
      const ScopedIsaCap capped(cap);
      expect_same_results(best, EagerRun(c).results());
    }
  }
}

TEST_P(OpConformance, IndicesMayBeOfEitherWidth) {
  for (const Case& f64 : cases()) {
    const Case wide = in_f32(f64);
    SCOPED_TRACE(wide.label());
    Case narrow = wide;
    for (Tensor& x : narrow.example.in)
      if (x.dtype() == DType::i64) x = cast<int32_t>(x);
    const std::vector<Tensor> expected = EagerRun(wide).results();
    const std::vector<Tensor> actual = EagerRun(narrow).results();
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!is_float(expected[i].dtype())) continue;  // moved integers keep their width
      EXPECT_TRUE(same(expected[i], actual[i])) << "in result " << i;
    }
  }
}

// ---- claims about each node, so that they hold for the ops of gradients too ----

/// A tensor in memory filled with one byte, and some more of it behind the end.
class Guarded {
 public:
  Guarded(const VarType& type, int fill)
      : bytes_(static_cast<size_t>(type.shape.numel()) * size_of(type.dtype)), fill_(fill) {
    memory_ = allocate_aligned(bytes_ + kGuard);
    std::memset(memory_.get(), fill, bytes_ + kGuard);
    tensor = Tensor::wrap(memory_.get(), type.shape, type.dtype);
  }

  bool intact() const {
    const auto* end = static_cast<const unsigned char*>(memory_.get()) + bytes_;
    return std::all_of(end, end + kGuard, [&](unsigned char byte) { return byte == fill_; });
  }

  Tensor tensor;

 private:
  static constexpr size_t kGuard = 256;
  size_t bytes_;
  int fill_;
  std::shared_ptr<void> memory_;
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

TEST_P(OpConformance, WritesAllOfItsOutputsAndNothingElse) {
  for (const Case& c : cases()) {
    for_each_node(in_f32(c), [](const NodeTrial& trial) {
      for (const int fill : {0x00, 0xFF}) {
        std::vector<Guarded> guarded;
        std::vector<Tensor> outputs, inputs;
        for (const Tensor& y : trial.expected) {
          guarded.emplace_back(VarType{y.shape(), y.dtype()}, fill);
          outputs.push_back(guarded.back().tensor);
        }
        for (const Tensor& x : trial.in) inputs.push_back(x.clone());
        trial.run(inputs, outputs);
        for (size_t i = 0; i < outputs.size(); ++i) {
          EXPECT_TRUE(same(trial.expected[i], outputs[i]))
              << "output " << i << " over memory of byte " << fill;
          EXPECT_TRUE(guarded[i].intact()) << "wrote behind output " << i;
        }
        for (size_t i = 0; i < inputs.size(); ++i)
          EXPECT_TRUE(same(trial.in[i], inputs[i])) << "input " << i << " was changed";
      }
    });
  }
}

TEST_P(OpConformance, ReadsOnlyTheShapeOfAnInputWhereItSaysSo) {
  for (const Case& c : cases()) {
    for_each_node(in_f32(c), [](const NodeTrial& trial) {
      if (trial.node.op->shape_of < 0) return;
      std::vector<Tensor> inputs, outputs;
      for (const Tensor& x : trial.in) inputs.push_back(x.clone());
      for (const Tensor& y : trial.expected) outputs.push_back(y.clone());
      Tensor& gone = inputs.at(static_cast<size_t>(trial.node.op->shape_of));
      if (gone.numel() > 0) std::memset(gone.data(), 0xFF, gone.bytes());
      trial.run(inputs, outputs);
      for (size_t i = 0; i < outputs.size(); ++i)
        EXPECT_TRUE(same(trial.expected[i], outputs[i]))
            << "output " << i << ", with the content of input " << trial.node.op->shape_of
            << " gone";
    });
  }
}

TEST_P(OpConformance, OverwritesInputsWhereItsTraitSaysSo) {
  for (const Case& c : cases()) {
    for_each_node(in_f32(c), [](const NodeTrial& trial) {
      const OpTrait trait = trial.node.op->trait;
      if (trait != OpTrait::elementwise && trait != OpTrait::inplace) return;
      const Tensor& first = trial.expected[0];
      for (size_t k = 0; k < trial.in.size(); ++k) {
        if (static_cast<int>(k) == trial.node.op->shape_of) continue;
        if (trial.in[k].numel() != first.numel() || trial.in[k].bytes() != first.bytes()) continue;
        std::vector<Tensor> inputs, outputs;
        for (const Tensor& x : trial.in) inputs.push_back(x.clone());
        for (const Tensor& y : trial.expected) outputs.push_back(y.clone());
        outputs[0] = Tensor::wrap(inputs[k].data(), first.shape(), first.dtype());
        trial.run(inputs, outputs);
        for (size_t i = 0; i < outputs.size(); ++i)
          EXPECT_TRUE(same(trial.expected[i], outputs[i]))
              << "output " << i << ", with output 0 written over input " << k;
      }
    });
  }
}

TEST_P(OpConformance, ElementwiseOpsMayRunInBlocks) {
  for (const Case& c : cases()) {
    for_each_node(in_f32(c), [](const NodeTrial& trial) {
      const bool chains = trial.node.op->trait == OpTrait::elementwise &&
                          trial.expected.size() == 1 && trial.one_size();
      if (!chains) return;
      const Tensor& whole = trial.expected[0];
      Tensor result = Tensor::uninitialized(whole.shape(), whole.dtype());
      const int64_t half = whole.numel() / 2;
      for (const auto& [from, to] : {std::pair{int64_t{0}, half}, std::pair{half, whole.numel()}}) {
        const auto block = [from = from, to = to](const Tensor& x) {
          auto* start = const_cast<std::byte*>(x.data()) + from * int64_t(size_of(x.dtype()));
          return Tensor::wrap(start, {to - from}, x.dtype());
        };
        std::vector<Tensor> inputs, outputs{block(result)};
        for (const Tensor& x : trial.in) inputs.push_back(block(x));
        trial.run(inputs, outputs);
      }
      EXPECT_TRUE(same(whole, result));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, OpConformance, testing::ValuesIn(names_of_ops_with_examples()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace argosy

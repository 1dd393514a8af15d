// The contract of every op, tried on the examples it carries: a new op costs no test code.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "op_cases.h"

namespace argosy {
namespace {

using namespace conformance;

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

/// infer's error for these types; "" if it accepts them.
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

/// A tensor in memory filled with one byte, followed by guard bytes.
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

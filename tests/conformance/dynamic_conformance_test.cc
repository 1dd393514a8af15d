// The contract of dynamic graphs for every op, tried on the examples that the ops carry.
#include <gtest/gtest.h>

#include "argosy/graph/autograd.h"
#include "argosy/graph/executor.h"
#include "argosy/ops/op_support.h"

namespace argosy {
namespace {

using dynamic::Value;
using dynamic::ValuePtr;

constexpr RunSeed kSeed{.seed = 17, .step = 3};

bool differentiable(const OpDef& op, const OpExample& example) {
  return op.grad != nullptr &&
         std::ranges::any_of(example.in, [](const Tensor& x) { return is_float(x.dtype()); });
}

/// Outputs of the op, then the gradients of sum(square(first output)) for each float input.
std::vector<Tensor> by_program(const OpDef& op, const OpExample& example) {
  Feeds feeds;
  Builder g;
  std::vector<Var> in;
  for (size_t i = 0; i < example.in.size(); ++i) {
    const Tensor& x = example.in[i];
    const std::string name = "x" + std::to_string(i);
    feeds[name] = x;
    in.push_back(g.variable({name, VarType{x.shape(), x.dtype()},
                             is_float(x.dtype()) ? VarKind::param : VarKind::input, ""}));
  }
  const std::vector<Var> out = g.apply_all(op.name, in, example.attrs);
  for (const Var var : out) g.output(var);
  if (differentiable(op, example) && is_float(out[0].type().dtype))
    g.backward(g.apply("sum", {g.apply("square", {out[0]})}));
  Executor executor(g.program(), {.fuse = false, .reuse = false});
  executor.run(feeds, {}, kSeed);
  std::vector<Tensor> results;
  for (const Var var : out) results.push_back(executor.value(var.id).clone());
  for (const VarGrad& grad : g.program().grads)
    results.push_back(executor.value(grad.grad).clone());
  return results;
}

std::vector<Tensor> by_values(const OpDef& op, const OpExample& example) {
  std::vector<ValuePtr> in;
  for (const Tensor& x : example.in) in.push_back(std::make_shared<Value>(x, is_float(x.dtype())));
  const auto out = dynamic::apply(op, in, example.attrs, {.random_seed = kSeed.for_node(0)});
  if (out[0]->trains) {
    const ValuePtr square = dynamic::apply(find_op("square"), {{out[0]}})[0];
    dynamic::backward(dynamic::apply(find_op("sum"), {{square}})[0]);
  }
  std::vector<Tensor> results;
  for (const ValuePtr& value : out) results.push_back(value->data);
  for (const ValuePtr& value : in)
    if (value->grad) results.push_back(*value->grad);
  return results;
}

class DynamicConformance : public testing::TestWithParam<std::string> {};

TEST_P(DynamicConformance, ValuesAndGradientsHaveTheBitsOfARecordedProgram) {
  const OpDef& op = find_op(GetParam());
  for (const OpExample& example : op.examples()) {
    const std::vector<Tensor> expected = by_program(op, example), actual = by_values(op, example);
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(same_bits(expected[i], actual[i])) << "result " << i << " (outputs, gradients)";
  }
}

std::vector<std::string> ops_with_examples() {
  std::vector<std::string> names;
  for (const OpDef* op : all_ops())
    if (op->examples != nullptr) names.push_back(op->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(AllOps, DynamicConformance, testing::ValuesIn(ops_with_examples()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace argosy

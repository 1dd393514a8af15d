#include "argosy/graph/autograd.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace argosy::dynamic {
namespace {

ValuePtr leaf(const Shape& shape, std::initializer_list<float> values) {
  return std::make_shared<Value>(Tensor::of<float>(shape, values), true);
}

ValuePtr op(std::string_view name, std::vector<ValuePtr> in, Attrs attrs = {}) {
  return apply(find_op(name), in, std::move(attrs))[0];
}

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

using Floats = std::vector<float>;

TEST(Autograd, GradientsAddUpInLeavesUntilTheyAreCleared) {
  const ValuePtr x = leaf({2}, {3, 4});
  backward(op("sum", {op("mul", {x, x})}));
  EXPECT_EQ(floats(*x->grad), (Floats{6, 8}));
  backward(op("sum", {x}));
  EXPECT_EQ(floats(*x->grad), (Floats{7, 9}));
}

TEST(Autograd, AResultRemembersNothingIfNoInputTrains) {
  const ValuePtr x = std::make_shared<Value>(Tensor::of<float>({1}, {2.0F}));
  EXPECT_EQ(op("square", {x})->origin, nullptr);
  const ValuePtr trains = leaf({1}, {2});
  EXPECT_EQ(apply(find_op("square"), {{trains}}, {}, {.records = false})[0]->origin, nullptr);
}

TEST(Autograd, InputsLiveAsLongAsAResultNeedsThem) {
  std::weak_ptr<Value> middle;
  ValuePtr loss;
  {
    const ValuePtr x = leaf({2}, {1, 2});
    const ValuePtr y = op("square", {x});
    middle = y;
    loss = op("sum", {y});
  }
  EXPECT_FALSE(middle.expired());
  backward(loss);
  EXPECT_TRUE(middle.expired()) << "backward frees the graph";
}

TEST(Autograd, ASecondBackwardNeedsTheGraphKept) {
  const ValuePtr x = leaf({1}, {3});
  const ValuePtr loss = op("square", {x});
  backward(loss, {}, Graph::kept);
  backward(loss);
  EXPECT_EQ(floats(*x->grad), Floats{12});
  EXPECT_THROW(backward(loss), ConfigError);
}

TEST(Autograd, AChainLongerThanTheStackIsFreed) {
  ValuePtr x = leaf({1}, {1});
  for (int i = 0; i < 300'000; ++i) x = op("scale", {x}, {{"scale", 1.0}});
  x.reset();
}

TEST(Autograd, AChainLongerThanTheStackIsDifferentiated) {
  const ValuePtr first = leaf({1}, {1});
  ValuePtr x = first;
  for (int i = 0; i < 100'000; ++i) x = op("scale", {x}, {{"scale", 1.0}});
  backward(x);
  EXPECT_EQ(floats(*first->grad), Floats{1});
}

/// A lookup in a table of 1000 rows of 2, with a gradient of rows.
ValuePtr looked_up(const ValuePtr& table, std::initializer_list<int64_t> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const auto index = std::make_shared<Value>(Tensor::of<int64_t>({count}, rows));
  return op("embedding", {table, index}, {{"sparse", int64_t{1}}, {"padding_idx", int64_t{7}}});
}

TEST(Autograd, LookupsGiveTheRowsOfATableOnceEach) {
  const auto table = std::make_shared<Value>(Tensor({1000, 2}), true);
  backward(op("sum", {op("add", {looked_up(table, {5, 9, 5}), looked_up(table, {9, 7, 3})})}));
  ASSERT_TRUE(table->row_grad && !table->grad);
  std::map<int64_t, float> counts;
  const auto rows = table->row_grad->rows.as<int64_t>();
  for (size_t i = 0; i < rows.size(); ++i)
    counts[rows[i]] = table->row_grad->values.as<float>()[i * 2];
  EXPECT_EQ(counts, (std::map<int64_t, float>{{3, 1}, {5, 2}, {9, 2}})) << "7 is padding";
}

TEST(Autograd, RowsAndAWholeGradientAddUp) {
  const auto table = std::make_shared<Value>(Tensor({10, 2}), true);
  backward(op("sum", {looked_up(table, {5})}));
  backward(op("sum", {table}));
  ASSERT_TRUE(table->grad && !table->row_grad);
  EXPECT_EQ(table->grad->as<float>()[10], 2.0F);
  EXPECT_EQ(table->grad->as<float>()[0], 1.0F);
}

TEST(Autograd, ALeafIsFinalWhenItsLastUseIsDifferentiated) {
  const ValuePtr a = leaf({1}, {3}), b = leaf({1}, {5}), c = leaf({1}, {7});
  const ValuePtr loss = op("mul", {op("mul", {op("mul", {a, b}), b}), c});
  std::vector<std::pair<const Value*, Floats>> told;
  backward(loss, {}, Graph::freed,
           [&](const Value& value) { told.emplace_back(&value, floats(*value.grad)); });
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0], std::pair(static_cast<const Value*>(c.get()), Floats{75}));
  EXPECT_EQ(std::set({told[1].first, told[2].first}), std::set<const Value*>({a.get(), b.get()}));
  EXPECT_EQ(floats(*b->grad), Floats{2 * 3 * 5 * 7});
  for (const auto& [value, grad] : told) EXPECT_EQ(grad, floats(*value->grad));
}

TEST(Autograd, OfATableOfRowsItIsNotKnownWhenItIsFinal) {
  const auto table = std::make_shared<Value>(Tensor({10, 2}), true);
  const ValuePtr w = leaf({1, 2}, {1, 1});
  const ValuePtr loss = op("sum", {op("mul", {op("add", {looked_up(table, {5}), table}), w})});
  std::vector<const Value*> told;
  backward(loss, {}, Graph::freed, [&](const Value& value) { told.push_back(&value); });
  EXPECT_EQ(told, std::vector<const Value*>{w.get()});
  EXPECT_EQ(table->grad->as<float>()[10], 11.0F) << "ten times by the sum, once by the row";
}

TEST(Autograd, GradientsOfListedValuesTouchNoOthers) {
  const ValuePtr x = leaf({1}, {3}), y = leaf({1}, {5});
  const ValuePtr product = op("mul", {x, y}), loss = op("square", {product});
  const auto grads = gradients({{loss}}, {}, {{x, product}}, Graph::freed);
  EXPECT_EQ(floats(*grads[0]), Floats{150});
  EXPECT_EQ(floats(*grads[1]), Floats{30});
  EXPECT_FALSE(x->grad || y->grad);
}

TEST(Autograd, AnInputChangedInPlaceIsNoticed) {
  const ValuePtr w = leaf({1}, {3});
  const ValuePtr loss = op("square", {w});
  ++w->version;
  EXPECT_THROW(backward(loss), ConfigError);
}

TEST(Autograd, AKeptGradientIsThatOfAValueInTheMiddle) {
  const ValuePtr x = leaf({1}, {3});
  const ValuePtr y = op("square", {x});
  keep_gradient(y);
  backward(op("square", {y}));
  EXPECT_EQ(floats(*y->grad), Floats{18});
}

TEST(Autograd, MessagesNameTheOpAndItsInputs) {
  try {
    op("add", {leaf({2}, {1, 2}), leaf({3}, {1, 2, 3})});
    FAIL() << "accepted";
  } catch (const ConfigError& e) {
    EXPECT_EQ(std::string(e.what()).rfind("add(f32[2], f32[3]): ", 0), 0U) << e.what();
  }
}

}  // namespace
}  // namespace argosy::dynamic

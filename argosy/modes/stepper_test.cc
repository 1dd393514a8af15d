#include "argosy/modes/stepper.h"

#include <gtest/gtest.h>

#include <cmath>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

dynamic::ValuePtr parameter(const Shape& shape, float value) {
  const auto made = std::make_shared<dynamic::Value>(Tensor(shape), true);
  std::ranges::fill(made->data.as<float>(), value);
  return made;
}

void set_grad(const dynamic::ValuePtr& value, float grad) {
  value->grad = Tensor(value->data.shape());
  std::ranges::fill(value->grad->as<float>(), grad);
}

float first(const dynamic::ValuePtr& value) { return value->data.as<float>()[0]; }

TEST(Stepper, UpdatesWhatTrainsAndHasAGradient) {
  const auto a = parameter({2}, 1), without = parameter({2}, 1), frozen = parameter({2}, 1);
  Stepper stepper("");
  for (const auto& value : {a, without, frozen}) stepper.add(value, {.rule = "sgd"});
  set_grad(a, 2);
  set_grad(frozen, 2);
  frozen->trains = false;
  stepper.step(0.25F);
  EXPECT_EQ(first(a), 0.5F);
  EXPECT_EQ(first(without), 1.0F);
  EXPECT_EQ(first(frozen), 1.0F);
  EXPECT_EQ(a->version, 1U);
  EXPECT_EQ(without->version, 0U);
}

TEST(Stepper, RowsHaveTheBitsOfTheWholeParameter) {
  for (const char* rule : {"sgd", "momentum(0.9)", "adam", "adamw", "adagrad", "ftrl(l1=0.1)"}) {
    SCOPED_TRACE(rule);
    const auto whole = parameter({3, 8}, 0.5F), rows = parameter({3, 8}, 0.5F);
    Stepper stepper("");
    for (const auto& value : {whole, rows})
      stepper.add(value, {.rule = rule, .regularizer = "l2(0.1)"});
    for (int step = 0; step < 3; ++step) {
      set_grad(whole, 0.25F);
      rows->row_grad = {.rows = Tensor::of<int64_t>({3}, {2, 0, 1}), .values = *whole->grad};
      stepper.step(0.1F);
    }
    EXPECT_TRUE(same_bits(whole->data, rows->data));
    EXPECT_EQ(stepper.state(0).values, stepper.state(1).values);
  }
}

TEST(Stepper, AGradientThatIsNotFiniteIsNamedAndChangesNothing) {
  for (const CheckNan policy : {CheckNan::fail, CheckNan::warn, CheckNan::off}) {
    Stepper stepper("", policy);
    const auto fine = parameter({2}, 1), bad = parameter({2}, 1);
    set_grad(fine, 1);
    set_grad(bad, INFINITY);
    stepper.add(fine, {.name = "fine"});
    stepper.add(bad, {.name = "bad"});
    testing::internal::CaptureStderr();
    const std::string message = message_of<DataError>([&] { stepper.step(1); });
    const std::string said = testing::internal::GetCapturedStderr();
    const std::string text = "step 1: the gradient of parameter 'bad' is not finite";
    EXPECT_EQ(message, policy == CheckNan::fail ? text : "nothing was thrown");
    EXPECT_EQ(said, policy == CheckNan::warn ? "warning: " + text + "\n" : "");
    EXPECT_EQ(first(fine), policy == CheckNan::fail ? 1 : 0);
  }
}

TEST(Stepper, OtherRowsAreLeftAlone) {
  const auto table = parameter({1000, 4}, 1);
  Stepper stepper("");
  stepper.add(table, {.rule = "adam"});
  table->row_grad = {.rows = Tensor::of<int64_t>({1}, {7}),
                     .values = Tensor::of<float>({1, 4}, {1, 1, 1, 1})};
  stepper.step(0.5F);
  const auto weights = table->data.as<float>();
  for (size_t i = 0; i < weights.size(); ++i)
    EXPECT_EQ(weights[i] != 1.0F, i / 4 == 7) << "weight " << i;
}

TEST(Stepper, ClipsAllGradientsTogetherButThoseThatAskNotTo) {
  const auto a = parameter({1}, 0), b = parameter({1}, 0), loose = parameter({1}, 0);
  Stepper stepper("global_norm(1)");
  stepper.add(a, {});
  stepper.add(b, {});
  stepper.add(loose, {.clips = false});
  set_grad(a, 3);
  set_grad(b, 4);
  set_grad(loose, 5);
  stepper.step(1);
  EXPECT_FLOAT_EQ(first(a), -0.6F);
  EXPECT_FLOAT_EQ(first(b), -0.8F);
  EXPECT_EQ(first(loose), -5.0F);
}

TEST(Stepper, RefusesWhatItCannotTrain) {
  Stepper stepper("");
  const auto wide = std::make_shared<dynamic::Value>(Tensor({2}, DType::f64), true);
  EXPECT_THROW(stepper.add(wide, {}), ConfigError);
  EXPECT_THROW(stepper.add(parameter({1}, 0), {.rule = "adamm"}), ConfigError);
  const size_t number = stepper.add(parameter({2}, 0), {.rule = "adam"});
  EXPECT_THROW(stepper.set_state(number, {.steps = 1, .values = {1, 2, 3}}), ConfigError);
}

}  // namespace
}  // namespace argosy

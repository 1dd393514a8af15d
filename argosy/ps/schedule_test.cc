#include "argosy/ps/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

std::string config_error(std::string_view text) {
  try {
    const Schedule schedule(text);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Schedule, APlainNumberIsConstant) {
  for (const char* text : {"0.1", " 1e-1 ", "constant(0.1)", "constant(rate=0.1)"}) {
    EXPECT_EQ(Schedule(text).rate(1), 0.1F) << text;
    EXPECT_EQ(Schedule(text).rate(1'000'000'000'000), 0.1F) << text;
  }
  EXPECT_EQ(Schedule("0").rate(7), 0.0F);
}

TEST(Schedule, PiecewiseHoldsARateUntilItsStep) {
  const Schedule schedule("piecewise(0.1, 1000, 0.01, 5000, 0.001)");
  EXPECT_EQ(schedule.rate(1), 0.1F);
  EXPECT_EQ(schedule.rate(1000), 0.1F);
  EXPECT_EQ(schedule.rate(1001), 0.01F);
  EXPECT_EQ(schedule.rate(5000), 0.01F);
  EXPECT_EQ(schedule.rate(5001), 0.001F);
  EXPECT_EQ(Schedule("piecewise(0.5)").rate(9), 0.5F);
}

TEST(Schedule, ExponentialDecaysSmoothlyOrInStairs) {
  const Schedule smooth("exponential(0.1, steps=10, factor=0.5)");
  EXPECT_FLOAT_EQ(smooth.rate(1), 0.1F);
  EXPECT_FLOAT_EQ(smooth.rate(6), 0.1F * std::sqrt(0.5F));
  EXPECT_FLOAT_EQ(smooth.rate(11), 0.05F);
  const Schedule stairs("exponential(0.1, steps=10, factor=0.5, staircase=1)");
  EXPECT_FLOAT_EQ(stairs.rate(10), 0.1F);
  EXPECT_FLOAT_EQ(stairs.rate(11), 0.05F);
  EXPECT_FLOAT_EQ(stairs.rate(31), 0.0125F);
}

TEST(Schedule, StepMultipliesEverySoOften) {
  const Schedule schedule("step(0.1, steps=3, factor=0.1)");
  EXPECT_FLOAT_EQ(schedule.rate(3), 0.1F);
  EXPECT_FLOAT_EQ(schedule.rate(4), 0.01F);
  EXPECT_FLOAT_EQ(schedule.rate(7), 0.001F);
}

TEST(Schedule, PolynomialEndsAndStays) {
  const Schedule schedule("polynomial(0.1, steps=10, end=0.02, power=2)");
  EXPECT_FLOAT_EQ(schedule.rate(1), 0.1F);
  EXPECT_FLOAT_EQ(schedule.rate(6), 0.08F * 0.25F + 0.02F);
  EXPECT_FLOAT_EQ(schedule.rate(11), 0.02F);
  EXPECT_FLOAT_EQ(schedule.rate(500), 0.02F);
  EXPECT_FLOAT_EQ(Schedule("polynomial(0.1, 10)").rate(11), 0.0001F);
}

TEST(Schedule, PolynomialCyclesOverLongerPeriods) {
  const Schedule schedule("polynomial(0.1, steps=10, end=0, cycle=1)");
  EXPECT_FLOAT_EQ(schedule.rate(1), 0.1F);
  EXPECT_FLOAT_EQ(schedule.rate(6), 0.05F);
  EXPECT_FLOAT_EQ(schedule.rate(11), 0.0F);
  EXPECT_FLOAT_EQ(schedule.rate(12), 0.1F * 9 / 20);  // 11 of 20 done
  EXPECT_FLOAT_EQ(schedule.rate(26), 0.1F * 5 / 30);
}

TEST(Schedule, CosineFallsFromRateToEnd) {
  const Schedule schedule("cosine(0.1, steps=8, end=0.02)");
  EXPECT_FLOAT_EQ(schedule.rate(1), 0.1F);
  EXPECT_FLOAT_EQ(schedule.rate(5), 0.06F);
  EXPECT_FLOAT_EQ(schedule.rate(9), 0.02F);
  EXPECT_FLOAT_EQ(schedule.rate(99), 0.02F);
}

TEST(Schedule, WarmupClimbsToWhatFollowsAndHandsOver) {
  const Schedule schedule("linear_warmup(steps=4, start=0.02) then step(0.1, steps=3, factor=0.1)");
  EXPECT_FLOAT_EQ(schedule.rate(1), 0.02F);
  EXPECT_FLOAT_EQ(schedule.rate(3), 0.06F);
  EXPECT_FLOAT_EQ(schedule.rate(5), 0.1F);
  EXPECT_FLOAT_EQ(schedule.rate(7), 0.1F);
  EXPECT_FLOAT_EQ(schedule.rate(8), 0.01F);
  EXPECT_FLOAT_EQ(Schedule("linear_warmup(steps=2) then 0.1").rate(2), 0.05F);
}

TEST(Schedule, MistakesAreNamed) {
  EXPECT_EQ(config_error("-0.1"), "'-0.1': a learning rate is a number of at least 0");
  EXPECT_EQ(config_error("nan"), "'nan': a learning rate is a number of at least 0");
  EXPECT_EQ(config_error("cosin(0.1)"),
            "'cosin(0.1)': no such schedule, expected a rate, constant, piecewise, exponential, "
            "polynomial, cosine, step or linear_warmup");
  EXPECT_EQ(config_error("cosine(0.1)"), "'cosine(0.1)': cosine needs steps");
  EXPECT_EQ(config_error("cosine(0.1, step=3)"),
            "'cosine(0.1, step=3)': schedule cosine has no argument 'step', did you mean steps?");
  EXPECT_EQ(config_error("step(0.1, steps=0)"),
            "'step(0.1, steps=0)': steps is 0, expected a whole number of at least 1");
  EXPECT_EQ(config_error("step(0.1, steps=2.5)"),
            "'step(0.1, steps=2.5)': steps is 2.5, expected a whole number of at least 1");
  EXPECT_EQ(config_error("piecewise(0.1, 10)"),
            "'piecewise(0.1, 10)': expected rate, until step, rate, ..., rate");
  EXPECT_EQ(config_error("piecewise(0.1, 10, 0.2, 10, 0.3)"),
            "'piecewise(0.1, 10, 0.2, 10, 0.3)': steps must rise, but 10 follows 10");
  EXPECT_EQ(config_error("linear_warmup(steps=3)"),
            "'linear_warmup(steps=3)': expected 'then' and a schedule after linear_warmup(...)");
  EXPECT_EQ(config_error("constant(1) then 0.1"),
            "'constant(1) then 0.1': only linear_warmup may stand before 'then'");
  EXPECT_NE(config_error(""), "accepted");
  EXPECT_NE(config_error("linear_warmup(steps=3) then "), "accepted");
}

}  // namespace
}  // namespace argosy::ps

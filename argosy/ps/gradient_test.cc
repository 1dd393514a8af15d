#include "argosy/ps/gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

std::vector<float> applied(std::string_view regularizer, std::string_view clip,
                           const std::vector<float>& w, std::vector<float> grad) {
  GradientPolicy(regularizer, clip).apply(w, grad);
  return grad;
}

std::string config_error(std::string_view regularizer, std::string_view clip) {
  try {
    const GradientPolicy policy(regularizer, clip);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(GradientPolicy, NothingGivenIsInactive) {
  EXPECT_FALSE(GradientPolicy("", "").active());
  EXPECT_FALSE(GradientPolicy("l2(0)", "").active());
  EXPECT_TRUE(GradientPolicy("l2(0.1)", "").active());
  EXPECT_TRUE(GradientPolicy("l1(0.1)", "").active());
  EXPECT_TRUE(GradientPolicy("", "value(1)").active());
}

TEST(GradientPolicy, L2AddsTheWeights) {
  EXPECT_EQ(applied("l2(0.5)", "", {2, -4, 0}, {1, 1, 1}), (std::vector<float>{2, -1, 1}));
}

TEST(GradientPolicy, L1AddsTheSigns) {
  EXPECT_EQ(applied("l1(0.5)", "", {2, -4, 0}, {1, 1, 1}), (std::vector<float>{1.5F, 0.5F, 1}));
}

TEST(GradientPolicy, ValueClips) {
  EXPECT_EQ(applied("", "value(1)", {0, 0, 0}, {-3, 0.5F, 3}), (std::vector<float>{-1, 0.5F, 1}));
  EXPECT_EQ(applied("", "value(-1, 2)", {0, 0, 0}, {-3, 0.5F, 3}),
            (std::vector<float>{-1, 0.5F, 2}));
}

TEST(GradientPolicy, ClipsBeforeItDecays) {
  EXPECT_EQ(applied("l2(1)", "value(1)", {10, -10}, {5, 5}), (std::vector<float>{11, -9}));
}

TEST(GradientPolicy, ClipDoesNotHideNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(applied("", "value(1)", {0}, {nan})[0]));
}

TEST(GradientPolicy, MistakesAreNamed) {
  EXPECT_EQ(config_error("l3(1)", ""), "'l3(1)': no such regularizer, expected l1(x) or l2(x)");
  EXPECT_EQ(config_error("l2", ""), "'l2': l2 needs coefficient");
  EXPECT_EQ(config_error("l2(-1)", ""),
            "'l2(-1)': coefficient is -1, expected a number of at least 0");
  EXPECT_EQ(config_error("", "norm(1)"),
            "'norm(1)': no such clip, expected value(x) or value(low, high)");
  EXPECT_EQ(config_error("", "value(0)"), "'value(0)': clips to -0 ... 0, expected low below high");
  EXPECT_EQ(config_error("", "value(2, 1)"),
            "'value(2, 1)': clips to 2 ... 1, expected low below high");
  EXPECT_NE(config_error("", "value(1, 2, 3)"), "accepted");
  EXPECT_NE(config_error("", "value"), "accepted");
}

}  // namespace
}  // namespace argosy::ps

#include "argosy/ps/initializer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

std::vector<float> filled(std::string_view text, size_t n,
                          const RandomStream& stream = parameter_stream(1, "w")) {
  std::vector<float> values(n);
  Initializer(text).fill(values, stream);
  return values;
}

struct Moments {
  double mean = 0, stddev = 0;
};
Moments moments(const std::vector<float>& values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  for (const float x : values) m.mean += x / n;
  for (const float x : values) m.stddev += (x - m.mean) * (x - m.mean) / n;
  m.stddev = std::sqrt(m.stddev);
  return m;
}

std::string config_error(std::string_view text) {
  try {
    const Initializer initializer(text);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Initializer, ConstantsFill) {
  EXPECT_EQ(filled("zeros", 2), (std::vector<float>{0, 0}));
  EXPECT_EQ(filled("ones", 2), (std::vector<float>{1, 1}));
  EXPECT_EQ(filled("constant(0.25)", 2), (std::vector<float>{0.25F, 0.25F}));
}

TEST(Initializer, AssignGivesItsValuesInOrder) {
  EXPECT_EQ(filled("assign(1, 2.5, -3)", 3), (std::vector<float>{1, 2.5F, -3}));
  EXPECT_EQ(Initializer("assign(1, 2.5, -3)").size(), 3U);
  EXPECT_EQ(Initializer("uniform").size(), std::nullopt);
  EXPECT_THROW(filled("assign(1, 2)", 3), ConfigError);
}

TEST(Initializer, UniformCoversItsRange) {
  const auto values = filled("uniform(-0.5, 0.1)", 100'000);
  EXPECT_GE(std::ranges::min(values), -0.5F);
  EXPECT_LE(std::ranges::max(values), 0.1F);
  EXPECT_LT(std::ranges::min(values), -0.499F);
  EXPECT_GT(std::ranges::max(values), 0.099F);
  EXPECT_NEAR(moments(values).mean, -0.2, 0.002);
  EXPECT_NEAR(moments(values).stddev, 0.6 / std::sqrt(12.0), 0.002);
}

TEST(Initializer, NormalHasItsMoments) {
  const auto [mean, stddev] = moments(filled("normal(0.5, 0.01)", 100'000));
  EXPECT_NEAR(mean, 0.5, 0.0002);
  EXPECT_NEAR(stddev, 0.01, 0.0002);
}

TEST(Initializer, TruncatedNormalStaysWithinTwoDeviations) {
  const auto values = filled("truncated_normal(1, 0.1)", 100'000);
  EXPECT_GE(std::ranges::min(values), 0.8F);
  EXPECT_LE(std::ranges::max(values), 1.2F);
  EXPECT_NEAR(moments(values).mean, 1, 0.002);
  EXPECT_NEAR(moments(values).stddev, 0.0880, 0.001);  // of a normal cut at two deviations
}

TEST(Initializer, TruncatedNormalKeepsWhatNeedsNoRedraw) {
  const auto normal = filled("normal", 1000), truncated = filled("truncated_normal", 1000);
  for (size_t i = 0; i < normal.size(); ++i) {
    const bool kept = std::abs(normal[i]) < 2;
    EXPECT_EQ(kept, normal[i] == truncated[i]) << i;
  }
}

TEST(Initializer, TruncatedNormalRedrawsNoOtherElementsValue) {
  auto values = filled("truncated_normal", 1000);
  std::ranges::sort(values);
  EXPECT_EQ(std::ranges::adjacent_find(values), values.end());
}

TEST(Initializer, AnyPartCanBeFilledAlone) {
  const RandomStream stream = parameter_stream(3, "w");
  for (const char* text : {"uniform", "normal", "truncated_normal", "zeros", "assign(1,2,3,4)"}) {
    const Initializer initializer(text);
    std::vector<float> whole(4), parts(4);
    initializer.fill(whole, stream);
    initializer.fill(std::span(parts).subspan(1), stream, 1);
    initializer.fill(std::span(parts).first(1), stream, 0);
    EXPECT_EQ(whole, parts) << text;
  }
}

TEST(Initializer, NamesAndSeedsGiveDifferentStreams) {
  const auto values = [](uint64_t seed, std::string_view name) {
    return filled("uniform", 4, parameter_stream(seed, name));
  };
  EXPECT_EQ(values(1, "w"), values(1, "w"));
  EXPECT_NE(values(1, "w"), values(1, "v"));
  EXPECT_NE(values(1, "w"), values(2, "w"));
}

TEST(Initializer, MistakesAreNamed) {
  EXPECT_EQ(config_error("xavier"),
            "'xavier': no such initializer, expected zeros, ones, constant, uniform, normal, "
            "truncated_normal or assign");
  EXPECT_EQ(config_error("uniform(1, -1)"), "'uniform(1, -1)': low 1 is above high -1");
  EXPECT_EQ(config_error("normal(0, -1)"),
            "'normal(0, -1)': stddev is -1, expected a number of at least 0");
  EXPECT_EQ(config_error("normal(std=1)"),
            "'normal(std=1)': initializer normal has no argument 'std'");
  EXPECT_EQ(config_error("constant"), "'constant': constant needs value");
  EXPECT_EQ(config_error("constant(inf)"),
            "'constant(inf)': value is inf, expected a finite number");
  EXPECT_EQ(config_error("assign()"), "'assign()': assign needs values");
  EXPECT_NE(config_error("zeros(1)"), "accepted");
}

}  // namespace
}  // namespace argosy::ps

#include "argosy/tensor/math.h"

#include <gtest/gtest.h>

#include <vector>

#include "argosy/base/isa.h"

namespace argosy {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kLeastNormal = std::numeric_limits<float>::min();
constexpr uint32_t kSign = 0x80000000U;

float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

/// Distance in units in the last place that a float has at `exact`.
double ulps(float actual, double exact) {
  const double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
  return std::abs(static_cast<double>(actual) - exact) / unit;
}

/// The worst distance between a function and its exact form over the normal floats of [low, high],
/// both signs, at a prime stride through all of them; where the result is not normal it is left
/// out.
struct Worst {
  double ulps = 0;
  float at = 0;
};
template <class F, class Exact>
Worst worst_over(float low, float high, F f, Exact exact) {
  constexpr uint32_t kStride = 1009;
  Worst worst;
  for (const uint32_t sign : {0U, kSign}) {
    for (uint32_t bits = std::bit_cast<uint32_t>(kLeastNormal);
         bits <= std::bit_cast<uint32_t>(kLargest); bits += kStride) {
      const float x = from_bits(bits | sign);
      if (x < low || x > high) continue;
      const double wanted = exact(static_cast<double>(x));
      const double size = std::abs(wanted);
      if (size < kLeastNormal || size > kLargest) continue;
      const double distance = ulps(f(x), wanted);
      if (!(distance <= worst.ulps)) worst = {distance, x};
    }
  }
  return worst;
}

void expect_within_two(const Worst& worst) {
  EXPECT_LE(worst.ulps, 2.0) << "at " << worst.at;
  EXPECT_GT(worst.ulps, 0.0) << "nothing was compared";
}

TEST(Math, ExpIsWithinTwoUnits) {
  expect_within_two(worst_over(
      -kInf, kInf, [](float x) { return math::exp(x); }, [](double x) { return std::exp(x); }));
}

TEST(Math, LogIsWithinTwoUnits) {
  expect_within_two(worst_over(
      kLeastNormal, kInf, [](float x) { return math::log(x); },
      [](double x) { return std::log(x); }));
}

TEST(Math, Log1pIsWithinTwoUnitsFromZeroToOne) {
  expect_within_two(worst_over(
      0.0F, 1.0F, [](float x) { return math::log1p(x); }, [](double x) { return std::log1p(x); }));
}

TEST(Math, TanhIsWithinTwoUnits) {
  expect_within_two(worst_over(
      -kInf, kInf, [](float x) { return math::tanh(x); }, [](double x) { return std::tanh(x); }));
}

TEST(Math, SigmoidIsWithinTwoUnits) {
  expect_within_two(worst_over(
      -kInf, kInf, [](float x) { return math::sigmoid(x); },
      [](double x) { return 1 / (1 + std::exp(-x)); }));
}

TEST(Math, ExpAtTheEnds) {
  EXPECT_EQ(math::exp(0.0F), 1.0F);
  EXPECT_EQ(math::exp(-0.0F), 1.0F);
  EXPECT_EQ(math::exp(kInf), kInf);
  EXPECT_EQ(math::exp(-kInf), 0.0F);
  EXPECT_EQ(math::exp(kLargest), kInf);
  EXPECT_EQ(math::exp(-kLargest), 0.0F);
  EXPECT_EQ(math::exp(kLeastNormal), 1.0F);
  EXPECT_TRUE(std::isnan(math::exp(kNan)));
  EXPECT_TRUE(std::isnan(math::exp(-kNan)));
  // On both sides of where it overflows.
  EXPECT_LE(ulps(math::exp(88.722F), std::exp(static_cast<double>(88.722F))), 2.0);
  EXPECT_EQ(math::exp(88.73F), kInf);
}

TEST(Math, ExpUnderflowsThroughDenormals) {
  EXPECT_NEAR(math::exp(-100.0F), std::exp(-100.0), 0x1.0p-149);
  EXPECT_NEAR(math::exp(-88.0F), std::exp(-88.0), 0x1.0p-149 * 64);
  EXPECT_EQ(math::exp(-104.0F), 0.0F);
}

TEST(Math, LogAtTheEnds) {
  EXPECT_EQ(math::log(1.0F), 0.0F);
  EXPECT_EQ(math::log(0.0F), -kInf);
  EXPECT_EQ(math::log(-0.0F), -kInf);
  EXPECT_EQ(math::log(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::log(-1.0F)));
  EXPECT_TRUE(std::isnan(math::log(-kLeastNormal)));
  EXPECT_TRUE(std::isnan(math::log(-kInf)));
  EXPECT_TRUE(std::isnan(math::log(kNan)));
  EXPECT_LE(ulps(math::log(kLargest), std::log(static_cast<double>(kLargest))), 2.0);
  EXPECT_LE(ulps(math::log(kLeastNormal), std::log(static_cast<double>(kLeastNormal))), 2.0);
}

TEST(Math, Log1pKeepsWhatOnePlusXRoundsAway) {
  EXPECT_EQ(math::log1p(0.0F), 0.0F);
  EXPECT_EQ(math::log1p(kLeastNormal), kLeastNormal);
  EXPECT_EQ(math::log1p(1e-10F), 1e-10F);
  EXPECT_LE(ulps(math::log1p(1.0F), std::log(2.0)), 2.0);
  EXPECT_TRUE(std::isnan(math::log1p(kNan)));
}

TEST(Math, TanhAndSigmoidAtTheEnds) {
  EXPECT_EQ(math::tanh(0.0F), 0.0F);
  EXPECT_EQ(math::tanh(kInf), 1.0F);
  EXPECT_EQ(math::tanh(-kInf), -1.0F);
  EXPECT_EQ(math::tanh(kLargest), 1.0F);
  EXPECT_EQ(math::tanh(-kLargest), -1.0F);
  EXPECT_EQ(math::tanh(kLeastNormal), kLeastNormal);
  EXPECT_TRUE(std::isnan(math::tanh(kNan)));
  EXPECT_EQ(math::sigmoid(0.0F), 0.5F);
  EXPECT_EQ(math::sigmoid(kInf), 1.0F);
  EXPECT_EQ(math::sigmoid(-kInf), 0.0F);
  EXPECT_EQ(math::sigmoid(kLargest), 1.0F);
  EXPECT_EQ(math::sigmoid(-kLargest), 0.0F);
  EXPECT_TRUE(std::isnan(math::sigmoid(kNan)));
}

/// All five over numbers of every size and sign, and the values that are none.
std::vector<float> all_functions() {
  std::vector<float> x = {0.0F, -0.0F, kInf, -kInf, 1.0F, -1.0F, kLargest, -kLargest};
  for (uint32_t bits = std::bit_cast<uint32_t>(kLeastNormal);
       bits <= std::bit_cast<uint32_t>(kLargest); bits += 1000003) {
    x.push_back(from_bits(bits));
    x.push_back(from_bits(bits | kSign));
  }
  const size_t n = x.size();
  std::vector<float> results(5 * n);
  vectorized([in = x.data(), out = results.data(), n] {
    for (size_t i = 0; i < n; ++i) out[i] = math::exp(in[i]);
    for (size_t i = 0; i < n; ++i) out[n + i] = math::log(in[i]);
    for (size_t i = 0; i < n; ++i) out[2 * n + i] = math::log1p(in[i]);
    for (size_t i = 0; i < n; ++i) out[3 * n + i] = math::tanh(in[i]);
    for (size_t i = 0; i < n; ++i) out[4 * n + i] = math::sigmoid(in[i]);
  });
  return results;
}

TEST(Math, EveryInstructionSetGivesTheSameBits) {
  const std::vector<float> best = all_functions();
  for (const Isa cap : {Isa::baseline, Isa::avx2}) {
    const ScopedIsaCap capped(cap);
    const std::vector<float> other = all_functions();
    for (size_t i = 0; i < best.size(); ++i) {
      if (std::isnan(best[i]) && std::isnan(other[i])) continue;  // of either sign
      ASSERT_EQ(std::bit_cast<uint32_t>(best[i]), std::bit_cast<uint32_t>(other[i]))
          << name(cap) << ", result " << i;
    }
  }
}

TEST(Math, SumIsExactOnSmallIntegersOfAnyCount) {
  for (const size_t n : {0U, 1U, 15U, 16U, 17U, 31U, 32U, 100U}) {
    std::vector<float> x(n);
    for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i + 1);
    const size_t total = n * (n + 1) / 2;
    EXPECT_EQ(math::sum(x.data(), n), static_cast<float>(total)) << n;
  }
}

TEST(Math, SumDependsOnCountNotOnPlace) {
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1.0F / static_cast<float>(i + 1);
  std::vector<float> moved(x.size() + 3);
  std::copy(x.begin(), x.end(), moved.begin() + 3);
  EXPECT_EQ(math::sum(x.data(), x.size()), math::sum(moved.data() + 3, x.size()));
}

}  // namespace
}  // namespace argosy

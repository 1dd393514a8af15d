#include "argosy/ps/rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "argosy/base/error.h"
#include "argosy/base/isa.h"
#include "argosy/base/rng.h"

namespace argosy::ps {
namespace {

/// A parameter with its state, as a table would hold it in one block.
struct Parameter {
  explicit Parameter(std::string_view spec, std::vector<float> weights)
      : rule(make_rule(spec)), w(std::move(weights)), state(rule->state_size(w.size())) {
    rule->init(state);
  }
  void apply(std::span<const float> grad, const Update& update) {
    rule->apply(w, state, grad, update);
  }

  std::unique_ptr<Rule> rule;
  std::vector<float> w, state;
};

std::vector<float> random_floats(size_t n, uint64_t seed) {
  const RandomStream stream(seed);
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(stream.normal(i));
  return values;
}

std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> all;
  all.reserve(values.size());
  for (const float value : values) all.push_back(std::bit_cast<uint32_t>(value));
  return all;
}

std::string config_error(std::string_view spec) {
  try {
    make_rule(spec);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "accepted";
}

class EveryRule : public testing::TestWithParam<std::string> {
 protected:
  static constexpr size_t kElements = 101;  // no multiple of a vector
};

INSTANTIATE_TEST_SUITE_P(Rules, EveryRule, testing::ValuesIn(rule_names()),
                         [](const auto& rule) { return rule.param; });

TEST_P(EveryRule, StateIsAFixedNumberOfFloatsPerWeight) {
  const auto rule = make_rule(GetParam());
  const size_t per_weight = rule->state_size(1);
  EXPECT_EQ(rule->state_size(0), 0U);
  EXPECT_EQ(rule->state_size(kElements), per_weight * kElements);
}

TEST_P(EveryRule, StepsStayFiniteAndUseWeightsAndState) {
  Parameter p(GetParam(), random_floats(kElements, 1));
  const auto before = p.w;
  for (uint64_t step = 1; step <= 50; ++step)
    p.apply(random_floats(kElements, 100 + step), {.lr = 0.01F, .step = step});
  for (size_t i = 0; i < kElements; ++i) {
    EXPECT_TRUE(std::isfinite(p.w[i])) << i;
    EXPECT_NE(p.w[i], before[i]) << i;
  }
  for (const float value : p.state) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(EveryRule, ZeroGradientsOfAFreshRowStayFinite) {
  Parameter p(GetParam(), std::vector<float>(kElements, 0.0F));
  const std::vector<float> zeros(kElements);
  for (uint64_t step = 1; step <= 3; ++step) p.apply(zeros, {.lr = 0.1F, .step = step});
  EXPECT_EQ(p.w, zeros);
}

TEST_P(EveryRule, TinyGradientsStayFinite) {
  Parameter p(GetParam(), std::vector<float>(kElements, 0.0F));
  const std::vector<float> tiny(kElements, 1e-30F);  // their squares are 0
  for (uint64_t step = 1; step <= 3; ++step) p.apply(tiny, {.lr = 0.1F, .step = step});
  for (const float w : p.w) EXPECT_TRUE(std::isfinite(w)) << w;
}

TEST_P(EveryRule, RateZeroKeepsFiniteWeights) {
  Parameter p(GetParam(), random_floats(kElements, 1));
  const auto before = p.w;
  p.apply(random_floats(kElements, 2), {.lr = 0, .step = 1});
  EXPECT_EQ(p.w, before);
}

TEST_P(EveryRule, BlocksEqualTheWholeUnlessTheRuleNeedsIt) {
  Parameter whole(GetParam(), random_floats(kElements, 1));
  if (whole.rule->whole_parameter()) GTEST_SKIP() << "never cut into blocks";
  constexpr size_t kCut = 37;
  Parameter head(GetParam(), {whole.w.begin(), whole.w.begin() + kCut});
  Parameter tail(GetParam(), {whole.w.begin() + kCut, whole.w.end()});
  for (uint64_t step = 1; step <= 5; ++step) {
    const auto grad = random_floats(kElements, 100 + step);
    const Update update{.lr = 0.05F, .step = step};
    whole.apply(grad, update);
    head.apply(std::span(grad).first(kCut), update);
    tail.apply(std::span(grad).subspan(kCut), update);
  }
  auto joined = head.w;
  joined.insert(joined.end(), tail.w.begin(), tail.w.end());
  EXPECT_EQ(bits(joined), bits(whole.w));
}

TEST_P(EveryRule, EveryInstructionSetComputesTheSameBits) {
  const auto run = [] {
    Parameter p(GetParam(), random_floats(kElements, 1));
    for (uint64_t step = 1; step <= 5; ++step)
      p.apply(random_floats(kElements, 100 + step), {.lr = 0.05F, .step = step});
    return std::pair(bits(p.w), bits(p.state));
  };
  const auto best = run();
  for (const Isa isa : {Isa::avx2, Isa::baseline}) {
    const ScopedIsaCap cap(isa);
    EXPECT_EQ(run(), best) << name(isa);
  }
}

TEST_P(EveryRule, ManyRowsAtOnceGiveTheBitsOfOneRowEach) {
  constexpr size_t kRows = 7;
  for (const size_t dim : {1, 3, 8, 9, 10, 16, 17, 32, 64}) {
    std::vector<Parameter> alone;
    for (size_t row = 0; row < kRows; ++row)
      alone.emplace_back(GetParam(), random_floats(dim, row));
    const size_t stride = dim + alone[0].state.size() + 2;  // 2 floats that must stay as they are
    std::vector<float> together(kRows * stride, 7.0F), expected = together;
    for (size_t row = 0; row < kRows; ++row) {
      const auto end = std::ranges::copy(alone[row].w, together.begin() + row * stride).out;
      std::ranges::copy(alone[row].state, end);
    }
    for (uint64_t step = 1; step <= 3; ++step) {
      const Update update{.lr = 0.05F, .step = step};
      const auto grads = random_floats(kRows * dim, 100 + step);
      std::vector<RowStep> rows;
      for (size_t row = 0; row < kRows; ++row) {
        rows.push_back({together.data() + row * stride, grads.data() + row * dim});
        alone[row].apply(std::span(grads).subspan(row * dim, dim), update);
      }
      alone[0].rule->apply_rows(rows, dim, update);
    }
    for (size_t row = 0; row < kRows; ++row) {
      const auto end = std::ranges::copy(alone[row].w, expected.begin() + row * stride).out;
      std::ranges::copy(alone[row].state, end);
    }
    EXPECT_EQ(bits(together), bits(expected)) << "dim " << dim;
  }
}

TEST_P(EveryRule, UnknownArgumentsAreRefused) {
  const std::string message = config_error(GetParam() + "(no_such_argument=1)");
  EXPECT_NE(message.find("rule " + GetParam() + " has no argument 'no_such_argument'"),
            std::string::npos)
      << message;
  EXPECT_NE(config_error(GetParam() + "(0,0,0,0,0,0,0)"), "accepted");
}

TEST(Rule, ZeroGradientLeavesFreshWeightsAlone) {
  for (const char* spec : {"sgd", "momentum", "momentum(nesterov=1)", "adagrad", "adam"}) {
    Parameter p(spec, random_floats(33, 1));
    const auto before = p.w;
    p.apply(std::vector<float>(33), {.lr = 0.1F, .step = 1});
    EXPECT_EQ(p.w, before) << spec;
  }
}

TEST(Rule, UnknownNamesAreAnsweredWithTheNearest) {
  EXPECT_EQ(config_error("adm"), "'adm': no rule 'adm', did you mean adam?");
  EXPECT_EQ(config_error("adam(beta=0.9)"),
            "'adam(beta=0.9)': rule adam has no argument 'beta', did you mean beta1?");
  EXPECT_EQ(config_error("ftrl_proximal_something"),
            "'ftrl_proximal_something': no rule 'ftrl_proximal_something'");
}

TEST(Rule, ArgumentsOutOfRangeAreRefused) {
  EXPECT_EQ(config_error("adam(beta1=1)"),
            "'adam(beta1=1)': beta1 is 1, expected a number from 0 to below 1");
  EXPECT_EQ(config_error("adam(epsilon=0)"),
            "'adam(epsilon=0)': epsilon is 0, expected a number above 0");
  EXPECT_EQ(config_error("adamw(weight_decay=nan)"),
            "'adamw(weight_decay=nan)': weight_decay is nan, expected a number of at least 0");
  EXPECT_EQ(config_error("momentum(nesterov=0.5)"),
            "'momentum(nesterov=0.5)': nesterov is 0.5, expected 0 or 1");
  EXPECT_EQ(config_error("ftrl(lr_power=0.5)"),
            "'ftrl(lr_power=0.5)': lr_power is 0.5, expected a number of at most 0");
}

// First steps in closed form, with lr = 0.1, w = 2 and g = 0.5.

std::vector<float> after_steps(std::string_view spec, uint64_t steps) {
  Parameter p(spec, {2});
  const std::vector<float> grad{0.5F};
  for (uint64_t step = 1; step <= steps; ++step) p.apply(grad, {.lr = 0.1F, .step = step});
  return p.w;
}

TEST(Rule, SgdSubtractsTheScaledGradient) {
  EXPECT_FLOAT_EQ(after_steps("sgd", 1)[0], 2 - 0.05F);
  EXPECT_FLOAT_EQ(after_steps("sgd", 3)[0], 2 - 0.15F);
}

TEST(Rule, MomentumAddsUpVelocity) {
  EXPECT_FLOAT_EQ(after_steps("momentum", 1)[0], 2 - 0.1F * 0.5F);
  EXPECT_FLOAT_EQ(after_steps("momentum", 2)[0], 2 - 0.1F * (0.5F + 0.95F));
  EXPECT_FLOAT_EQ(after_steps("momentum(0.5)", 2)[0], 2 - 0.1F * (0.5F + 0.75F));
}

TEST(Rule, NesterovLooksAhead) {
  EXPECT_FLOAT_EQ(after_steps("momentum(nesterov=1)", 1)[0], 2 - 0.1F * (0.5F + 0.9F * 0.5F));
  EXPECT_FLOAT_EQ(after_steps("momentum(0.9, nesterov=1)", 2)[0],
                  2 - 0.1F * (0.95F + 0.5F + 0.9F * 0.95F));
}

TEST(Rule, AdagradsFirstStepIsTheRate) {
  EXPECT_FLOAT_EQ(after_steps("adagrad", 1)[0], 2 - 0.1F);
  EXPECT_FLOAT_EQ(after_steps("adagrad", 2)[0], 2 - 0.1F * (1 + 1 / std::sqrt(2.0F)));
  EXPECT_FLOAT_EQ(after_steps("adagrad(initial_accumulator=0.75)", 1)[0], 2 - 0.05F);
  EXPECT_FLOAT_EQ(after_steps("adagrad(epsilon=0.5)", 1)[0], 2 - 0.05F);
}

TEST(Rule, AdamsFirstStepIsTheRate) {
  EXPECT_FLOAT_EQ(after_steps("adam", 1)[0], 2 - 0.1F);
  EXPECT_FLOAT_EQ(after_steps("adam", 3)[0], 2 - 0.3F);  // a constant gradient has no bias
  EXPECT_FLOAT_EQ(after_steps("adam(epsilon=0.5)", 1)[0], 2 - 0.05F);
}

TEST(Rule, AdamsCorrectionMayRunAStepAhead) {
  const double ahead = std::sqrt(1 - 0.999 * 0.999) / (1 - 0.9 * 0.9);
  const double at_one = std::sqrt(1 - 0.999) / (1 - 0.9);
  EXPECT_NEAR(after_steps("adam(lead=1)", 1)[0], 2 - 0.1 * ahead / at_one, 1e-6);
}

TEST(Rule, AdamWShrinksWeightsFirst) {
  EXPECT_FLOAT_EQ(after_steps("adamw", 1)[0], 2 * (1 - 0.1F * 0.01F) - 0.1F);
  EXPECT_EQ(after_steps("adamw(weight_decay=0)", 3), after_steps("adam", 3));
}

TEST(Rule, FtrlsFirstStepForgetsTheFirstWeight) {
  // n = 0.25, z = 0.5 - 0.5 / 0.1 * 2 = -9.5, w = -z / (0.5 / 0.1)
  EXPECT_FLOAT_EQ(after_steps("ftrl", 1)[0], 1.9F);
  EXPECT_FLOAT_EQ(after_steps("ftrl(l1=0.5, l2=1)", 1)[0], 9 / 7.0F);
  EXPECT_EQ(after_steps("ftrl(l1=10)", 1)[0], 0.0F);
  // n^0.25 = sqrt(0.5), z = 0.5 - sqrt(0.5) / 0.1 * 2
  EXPECT_NEAR(after_steps("ftrl(lr_power=-0.25)", 1)[0], (20 * std::sqrt(0.5) - 0.5) / 7.0710678,
              1e-6);
}

TEST(Rule, LambsFirstStepIsOneTenthOfTheNorm) {
  EXPECT_FLOAT_EQ(after_steps("lamb", 1)[0], 2 - 0.1F * 2);
  Parameter zero("lamb(weight_decay=0)", {0});  // no norm: a plain adam step
  zero.apply(std::vector<float>{0.5F}, {.lr = 0.1F, .step = 1});
  EXPECT_NEAR(zero.w[0], -0.1F, 1e-6);
}

TEST(Rule, LarsScalesTheRateByTheNorms) {
  EXPECT_FLOAT_EQ(after_steps("lars(weight_decay=0)", 1)[0], 2 - 0.1F * 0.5F);  // momentum's step
  EXPECT_FLOAT_EQ(after_steps("lars(coeff=0.5, weight_decay=0.5)", 1)[0],
                  2 - 0.1F * 0.5F * 2 / 1.5F * 1.5F);
  Parameter zero("lars", {0});  // no norm: the rate itself
  zero.apply(std::vector<float>{0.5F}, {.lr = 0.1F, .step = 1});
  EXPECT_FLOAT_EQ(zero.w[0], -0.05F);
}

}  // namespace
}  // namespace argosy::ps

// Rules against others' results: PyTorch's and Paddle's optimizers, recorded in
// tests/golden/optimizer_traces, and for the rules that PyTorch does not have, the formulas in
// double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "argosy/base/error.h"
#include "argosy/ps/rule.h"

namespace argosy::ps {
namespace {

using Doubles = std::vector<double>;

// The two formulas of record.py.
float first_weight(int i) { return static_cast<float>((i * 53) % 97 - 48) / 32.0F; }
float gradient(int i, int t) { return static_cast<float>((i * 37 + t * 101) % 211 - 105) / 64.0F; }

/// Weights after each step of a rule on those formulas.
std::vector<std::vector<float>> replay(std::string_view spec, float rate, int elements, int steps) {
  const auto rule = make_rule(spec);
  std::vector<float> w, grad(elements), state(rule->state_size(elements));
  for (int i = 0; i < elements; ++i) w.push_back(first_weight(i));
  rule->init(state);
  std::vector<std::vector<float>> all;
  for (int t = 1; t <= steps; ++t) {
    for (int i = 0; i < elements; ++i) grad[i] = gradient(i, t);
    rule->apply(w, state, grad, {.lr = rate, .step = static_cast<uint64_t>(t)});
    all.push_back(w);
  }
  return all;
}

void expect_close(const std::vector<float>& got, const Doubles& expected, const std::string& where,
                  double tolerance = 2e-6) {
  ASSERT_EQ(got.size(), expected.size()) << where;
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], tolerance * (std::abs(expected[i]) + 0.05))
        << where << ", " << i;
}

struct Trace {
  std::string rule;
  float rate;
  int elements, steps;
  std::vector<Doubles> weights;
};

std::string field(const std::string& line, const std::string& name) {
  const auto start = line.find(name + "=");
  check<DataError>(start != std::string::npos, "no ", name, "= in '", line, "'");
  const auto value = start + name.size() + 1;
  return line.substr(value, line.find(' ', value) - value);
}

Trace read_trace(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  Trace trace{.rule = field(line, "rule"),
              .rate = std::stof(field(line, "rate")),
              .elements = std::stoi(field(line, "elements")),
              .steps = std::stoi(field(line, "steps")),
              .weights = {}};
  while (std::getline(in, line)) {
    std::istringstream numbers(line);
    trace.weights.emplace_back(std::istream_iterator<double>(numbers),
                               std::istream_iterator<double>());
  }
  return trace;
}

/// How many traces there were.
int follow_traces(const std::filesystem::path& folder, double tolerance) {
  int traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") continue;
    ++traces;
    const Trace trace = read_trace(entry.path());
    const auto got = replay(trace.rule, trace.rate, trace.elements, trace.steps);
    EXPECT_EQ(trace.weights.size(), got.size()) << entry.path();
    for (size_t t = 0; t < std::min(got.size(), trace.weights.size()); ++t)
      expect_close(got[t], trace.weights[t], trace.rule + ", step " + std::to_string(t + 1),
                   tolerance);
  }
  return traces;
}

const std::filesystem::path kTraces = ARGOSY_SOURCE_DIR "/tests/golden/optimizer_traces";

TEST(RuleTrace, RulesFollowPyTorch) { EXPECT_GE(follow_traces(kTraces, 2e-6), 7); }

/// Which adds up norms in float.
TEST(RuleTrace, LargeBatchRulesFollowPaddle) {
  EXPECT_EQ(follow_traces(kTraces / "paddle", 1e-5), 4);
}

// The formulas in double, as their papers and Paddle's operators write them.

constexpr int kElements = 45, kSteps = 20;
constexpr double kRate = 0.05F;

double length(const Doubles& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

/// Runs step(w, g, t) over the formulas and compares every step of the rule with it.
template <class Step>
void expect_follows(std::string_view spec, Step step) {
  const auto got = replay(spec, static_cast<float>(kRate), kElements, kSteps);
  Doubles w, g(kElements);
  for (int i = 0; i < kElements; ++i) w.push_back(first_weight(i));
  for (int t = 1; t <= kSteps; ++t) {
    for (int i = 0; i < kElements; ++i) g[i] = gradient(i, t);
    step(w, g, t);
    expect_close(got[t - 1], w, std::string(spec) + ", step " + std::to_string(t));
  }
}

TEST(RuleTrace, LambFollowsItsFormula) {
  Doubles m(kElements), v(kElements), r(kElements);
  expect_follows("lamb(beta1=0.8, beta2=0.99, epsilon=1e-6, weight_decay=0.02)",
                 [&](Doubles& w, const Doubles& g, int t) {
                   for (size_t i = 0; i < w.size(); ++i) {
                     m[i] = 0.8 * m[i] + 0.2 * g[i];
                     v[i] = 0.99 * v[i] + 0.01 * g[i] * g[i];
                     const double m_hat = m[i] / (1 - std::pow(0.8, t));
                     const double v_hat = v[i] / (1 - std::pow(0.99, t));
                     r[i] = m_hat / (std::sqrt(v_hat) + 1e-6) + 0.02 * w[i];
                   }
                   const double trust = length(w) / length(r);
                   for (size_t i = 0; i < w.size(); ++i) w[i] -= kRate * trust * r[i];
                 });
}

TEST(RuleTrace, LarsFollowsItsFormula) {
  Doubles v(kElements);
  expect_follows("lars(mu=0.9, coeff=0.1, weight_decay=0.01, epsilon=0.001)",
                 [&](Doubles& w, const Doubles& g, int) {
                   const double rate =
                       kRate * 0.1 * length(w) / (length(g) + 0.01 * length(w) + 0.001);
                   for (size_t i = 0; i < w.size(); ++i) {
                     v[i] = 0.9 * v[i] + rate * (g[i] + 0.01 * w[i]);
                     w[i] -= v[i];
                   }
                 });
}

void expect_ftrl_follows(double l1, double l2, double lr_power) {
  Doubles n(kElements), z(kElements);
  std::ostringstream spec;
  spec << "ftrl(l1=" << l1 << ", l2=" << l2 << ", lr_power=" << lr_power << ")";
  expect_follows(spec.str(), [&](Doubles& w, const Doubles& g, int) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double next = n[i] + g[i] * g[i];
      const double sigma = (std::pow(next, -lr_power) - std::pow(n[i], -lr_power)) / kRate;
      z[i] += g[i] - sigma * w[i];
      n[i] = next;
      const double sign = z[i] > 0 ? 1 : -1;
      const double curvature = std::pow(n[i], -lr_power) / kRate + 2 * l2;
      w[i] = std::abs(z[i]) > l1 ? (l1 * sign - z[i]) / curvature : 0;
    }
  });
}

TEST(RuleTrace, FtrlFollowsItsFormula) { expect_ftrl_follows(0, 0, -0.5); }
TEST(RuleTrace, FtrlWithPenaltiesFollowsItsFormula) { expect_ftrl_follows(0.5, 0.25, -0.5); }
TEST(RuleTrace, FtrlOfAnotherPowerFollowsItsFormula) { expect_ftrl_follows(0.1, 0.1, -0.75); }

}  // namespace
}  // namespace argosy::ps

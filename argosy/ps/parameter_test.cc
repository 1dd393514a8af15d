#include "argosy/ps/parameter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

using Floats = std::vector<float>;

ParameterSpec spec_of(size_t elements, std::string rule = "adam") {
  return {.name = "w",
          .elements = elements,
          .rule = std::move(rule),
          .init = "uniform(-1, 1)",
          .learning_rate = "0.1",
          .regularizer = "",
          .clip = "",
          .seed = 7};
}

Floats gradients(size_t n, uint64_t step) {
  Floats grads(n);
  for (size_t i = 0; i < n; ++i)
    grads[i] = static_cast<float>((i * 37 + step * 101) % 211) / 64.0F - 1.5F;
  return grads;
}

Floats weights(Parameter& parameter) {
  return {parameter.weights().begin(), parameter.weights().end()};
}
Floats state(Parameter& parameter) { return {parameter.state().begin(), parameter.state().end()}; }

/// What a call that must fail says; also checks that it changed nothing.
template <class E, class Call>
std::string error_of(Parameter& parameter, Call call) {
  const Floats w = weights(parameter), s = state(parameter);
  std::string message = "accepted";
  try {
    call();
  } catch (const E& e) {
    message = e.what();
  }
  EXPECT_EQ(weights(parameter), w);
  EXPECT_EQ(state(parameter), s);
  return message;
}

std::string config_error(ParameterSpec spec) {
  try {
    const Parameter parameter(std::move(spec));
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Parameter, FirstValuesDependOnSeedAndName) {
  Parameter one(spec_of(10)), other(spec_of(10));
  EXPECT_EQ(weights(one), weights(other));
  ParameterSpec spec = spec_of(10);
  spec.name = "v";
  Parameter named(spec);
  EXPECT_NE(weights(one), weights(named));
}

TEST(Parameter, SlicesTrainAsTheirPartOfTheWhole) {
  constexpr size_t kAll = 11, kCut = 4;
  Parameter whole(spec_of(kAll));
  ParameterSpec low = spec_of(kCut), high = spec_of(kAll - kCut);
  high.first = kCut;
  low.of = high.of = kAll;
  Parameter front(low), back(high);
  for (uint64_t step = 1; step <= 4; ++step) {
    Floats together = weights(front);
    const Floats rest = weights(back);
    together.insert(together.end(), rest.begin(), rest.end());
    EXPECT_EQ(together, weights(whole)) << "before step " << step;
    const Floats grads = gradients(kAll, step);
    whole.apply(grads, step);
    front.apply(std::span(grads).first(kCut), step);
    back.apply(std::span(grads).subspan(kCut), step);
  }
}

TEST(Parameter, WeightsAreAligned) {
  Parameter parameter(spec_of(1001));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(parameter.weights().data()) % 64, 0U);
}

TEST(Parameter, ReadsWhatWasAssigned) {
  Parameter parameter(spec_of(3));
  parameter.assign(Floats{1, 2, 3});
  Floats out(3);
  parameter.read(out);
  EXPECT_EQ(out, (Floats{1, 2, 3}));
}

TEST(Parameter, TheScheduleGivesTheRateOfAStep) {
  ParameterSpec spec = spec_of(1, "sgd");
  spec.init = "zeros";
  spec.learning_rate = "piecewise(0.5, 1, 0.25)";
  Parameter parameter(spec);
  parameter.apply(Floats{1}, 1);
  EXPECT_EQ(weights(parameter), (Floats{-0.5F}));
  parameter.apply(Floats{1}, 2);
  EXPECT_EQ(weights(parameter), (Floats{-0.75F}));
}

TEST(Parameter, ClipAndDecayHappenBeforeTheRule) {
  ParameterSpec spec = spec_of(3, "sgd");
  spec.init = "constant(2)";
  spec.learning_rate = "1";
  spec.regularizer = "l2(0.25)";
  spec.clip = "value(1)";
  Parameter parameter(spec);
  const Floats grads{5, -5, 0.25F};
  parameter.apply(grads, 1);
  EXPECT_EQ(weights(parameter), (Floats{0.5F, 2.5F, 1.25F}));
  EXPECT_EQ(grads, (Floats{5, -5, 0.25F}));
}

TEST(Parameter, RulesSetUpTheirState) {
  Parameter parameter(spec_of(5, "adagrad(initial_accumulator=0.5)"));
  EXPECT_EQ(state(parameter), Floats(5, 0.5F));
}

TEST(Parameter, WhatDoesNotFitIsRefusedWhole) {
  Parameter parameter(spec_of(5));
  const Floats good(5, 1.0F), few(4, 1.0F), moments(10, 1.0F);
  Floats out(4);
  EXPECT_EQ(error_of<DataError>(parameter, [&] { parameter.apply(good, 0); }),
            "parameter 'w': step 0, but the first step is 1");
  EXPECT_EQ(error_of<DataError>(parameter, [&] { parameter.apply(few, 1); }),
            "parameter 'w': got 4 gradients, expected 5");
  EXPECT_EQ(error_of<DataError>(parameter, [&] { parameter.assign(few); }),
            "parameter 'w': 4 floats to assign, it has 5");
  EXPECT_EQ(error_of<DataError>(parameter, [&] { parameter.read(out); }),
            "parameter 'w': 4 floats asked for, it has 5");
  EXPECT_EQ(error_of<DataError>(parameter, [&] { parameter.copy_in(few, moments); }),
            "parameter 'w': 4 weights and a state of 10, expected 5 and 10");
}

TEST(Parameter, CopiedOutAndInTrainsOnWithTheSameBits) {
  Parameter one(spec_of(11)), other(spec_of(11));
  for (uint64_t step = 1; step <= 3; ++step) one.apply(gradients(11, step), step);
  Floats w(11), s(one.state_size());
  one.copy_out(w, s);
  other.copy_in(w, s);
  one.apply(gradients(11, 4), 4);
  other.apply(gradients(11, 4), 4);
  EXPECT_EQ(weights(one), weights(other));
  EXPECT_EQ(state(one), state(other));
}

TEST(Parameter, ImpossibleSpecsAreRefused) {
  EXPECT_EQ(config_error(spec_of(0)), "parameter 'w': elements is 0, expected at least 1");
  ParameterSpec slice = spec_of(5, "lars");
  slice.of = 9;
  EXPECT_EQ(config_error(slice),
            "rule 'lars' needs the whole of parameter 'w': a slice has 5 elements, expected 9");
  slice.first = 5;
  EXPECT_EQ(config_error(slice), "parameter 'w': elements 5 to 10 of only 9");
  ParameterSpec spec = spec_of(5);
  spec.init = "assign(1, 2)";
  EXPECT_EQ(config_error(spec), "'assign(1, 2)': parameter 'w' has 5 elements");
}

}  // namespace
}  // namespace argosy::ps

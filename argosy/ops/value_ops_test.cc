// Known values of the ops that compute with values, where they say more than the conformance suite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "argosy/graph/builder.h"

namespace argosy {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Values = std::vector<float>;

Tensor vector_of(std::initializer_list<float> values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

/// Results of one op on these inputs.
std::vector<Tensor> run(std::string_view name, std::vector<Tensor> in, const Attrs& attrs = {},
                        uint64_t seed = 1) {
  const OpDef& op = find_op(name);
  std::vector<VarType> in_types, out_types;
  for (const Tensor& x : in) in_types.push_back({x.shape(), x.dtype()});
  infer(op, {in_types, attrs, out_types});
  std::vector<Tensor> out;
  out.reserve(out_types.size());
  for (const VarType& type : out_types)
    out.push_back(Tensor::uninitialized(type.shape, type.dtype));
  std::vector<Tensor*> in_pointers, out_pointers;
  for (Tensor& x : in) in_pointers.push_back(&x);
  for (Tensor& y : out) out_pointers.push_back(&y);
  op.run({in_pointers, out_pointers, attrs, seed});
  return out;
}

Values values_of(const Tensor& x) { return {x.as<float>().begin(), x.as<float>().end()}; }

/// The only or first result, as floats.
Values result(std::string_view name, std::vector<Tensor> in, const Attrs& attrs = {}) {
  return values_of(run(name, std::move(in), attrs)[0]);
}

/// Gradient of the sum of the first result, by input; empty for an integer one.
std::vector<Values> gradients(std::string_view name, const std::vector<Tensor>& in,
                              const Attrs& attrs = {}) {
  Builder g([&](const VarDesc& desc) { return in.at(std::stoul(desc.name)); });
  std::vector<Var> vars;
  for (size_t i = 0; i < in.size(); ++i) {
    const VarKind kind = is_float(in[i].dtype()) ? VarKind::param : VarKind::input;
    vars.push_back(g.variable({std::to_string(i), {in[i].shape(), in[i].dtype()}, kind, ""}));
  }
  std::vector<Values> grads(in.size());
  for (const VarGrad& grad : g.backward(g.apply("sum", {g.apply_all(name, vars, attrs)[0]})))
    grads[grad.var.index()] = values_of(g.value(grad.grad));
  return grads;
}

void expect_near(const Values& actual, const Values& expected, float tolerance = 1e-5F) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
}

// ---- element by element ----

TEST(Scale, AddsTheBiasBeforeOrAfter) {
  const Tensor x = vector_of({1, 2});
  EXPECT_EQ(result("scale", {x}, {{"scale", 3.0}, {"bias", 1.0}}), (Values{4, 7}));
  EXPECT_EQ(result("scale", {x}, {{"scale", 3.0}, {"bias", 1.0}, {"bias_after_scale", int64_t{0}}}),
            (Values{6, 9}));
}

TEST(Pow, KnownValues) {
  EXPECT_EQ(result("pow", {vector_of({-2, 3})}, {{"factor", 3.0}}), (Values{-8, 27}));
  EXPECT_EQ(result("pow", {vector_of({4, 9})}, {{"factor", 0.5}}), (Values{2, 3}));
  EXPECT_EQ(result("pow", {vector_of({4, 9})}), (Values{4, 9}));
}

TEST(Pow, AConstantHasNoGradientAlsoAtZero) {
  EXPECT_EQ(gradients("pow", {vector_of({0, 1})}, {{"factor", 0.0}})[0], (Values{0, 0}));
}

TEST(Abs, HasNoGradientAtZero) {
  EXPECT_EQ(gradients("abs", {vector_of({-2, 0, 2})})[0], (Values{-1, 0, 1}));
}

TEST(Clip, GradientPassesAtTheBounds) {
  const Attrs bounds{{"min", -1.0}, {"max", 1.0}};
  EXPECT_EQ(result("clip", {vector_of({-2, -1, 0, 1, 2})}, bounds), (Values{-1, -1, 0, 1, 1}));
  EXPECT_EQ(gradients("clip", {vector_of({-2, -1, 0, 1, 2})}, bounds)[0], (Values{0, 1, 1, 1, 0}));
}

TEST(Clip, RefusesAnEmptyInterval) {
  EXPECT_THROW(run("clip", {vector_of({1})}, {{"min", 1.0}, {"max", 0.0}}), ConfigError);
}

TEST(Maximum, ATieGoesToTheFirst) {
  const std::vector<Tensor> in = {vector_of({1, 2, 3}), vector_of({3, 2, 1})};
  EXPECT_EQ(result("maximum", in), (Values{3, 2, 3}));
  EXPECT_EQ(result("minimum", in), (Values{1, 2, 1}));
  const auto largest = gradients("maximum", in), smallest = gradients("minimum", in);
  EXPECT_EQ(largest[0], (Values{0, 1, 1}));
  EXPECT_EQ(largest[1], (Values{1, 0, 0}));
  EXPECT_EQ(smallest[0], (Values{1, 1, 0}));
  EXPECT_EQ(smallest[1], (Values{0, 0, 1}));
}

TEST(Maximum, KeepsNan) {
  for (const char* op : {"maximum", "minimum"}) {
    for (const float x : result(op, {vector_of({kNan, 1}), vector_of({1, kNan})}))
      EXPECT_TRUE(std::isnan(x)) << op;
  }
}

TEST(Compare, KnownValues) {
  const Tensor a = vector_of({1, 2, 3}), b = Tensor::scalar(2);
  const auto holds = [&](const char* op) {
    const Tensor y = run(op, {a, b})[0];
    return std::vector<bool>(y.as<bool>().begin(), y.as<bool>().end());
  };
  EXPECT_EQ(holds("equal"), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(holds("not_equal"), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(holds("less"), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(holds("less_equal"), (std::vector<bool>{true, true, false}));
  EXPECT_EQ(holds("greater"), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(holds("greater_equal"), (std::vector<bool>{false, true, true}));
}

TEST(Where, BroadcastsAllThree) {
  const Tensor rows = Tensor::of<bool>({2, 1}, {true, false});
  EXPECT_EQ(result("where", {rows, Tensor::of<float>({3}, {1, 2, 3}), Tensor::scalar(9)}),
            (Values{1, 2, 3, 9, 9, 9}));
}

TEST(Where, TheOtherSideMayBeInfinite) {
  const Tensor cond = Tensor::of<bool>({2}, {true, false});
  const auto grads = gradients("where", {cond, vector_of({1, kInf}), vector_of({kInf, 1})});
  EXPECT_EQ(grads[1], (Values{1, 0}));
  EXPECT_EQ(grads[2], (Values{0, 1}));
}

TEST(Cast, AFloatIsHeldToWhatAnIntegerCanSay) {
  const Tensor x = vector_of({1.9F, -1.9F, 1e20F, -1e20F, kInf, -kInf, kNan});
  constexpr auto kMost32 = std::numeric_limits<int32_t>::max();
  constexpr auto kLeast32 = std::numeric_limits<int32_t>::min();
  constexpr auto kMost64 = std::numeric_limits<int64_t>::max();
  constexpr auto kLeast64 = std::numeric_limits<int64_t>::min();
  EXPECT_TRUE(
      same_bits(run("cast", {x}, {{"to", "i32"}})[0],
                Tensor::of<int32_t>({7}, {1, -1, kMost32, kLeast32, kMost32, kLeast32, 0})));
  EXPECT_TRUE(
      same_bits(run("cast", {x}, {{"to", "i64"}})[0],
                Tensor::of<int64_t>({7}, {1, -1, kMost64, kLeast64, kMost64, kLeast64, 0})));
  EXPECT_TRUE(same_bits(run("cast", {x}, {{"to", "u8"}})[0],
                        Tensor::of<uint8_t>({7}, {1, 0, 255, 0, 255, 0, 0})));
}

TEST(Cast, AnythingButZeroIsTrue) {
  EXPECT_TRUE(same_bits(run("cast", {vector_of({0, -0.0F, 0.5F, kNan})}, {{"to", "b8"}})[0],
                        Tensor::of<bool>({4}, {false, false, true, true})));
  EXPECT_TRUE(same_bits(run("cast", {Tensor::of<int64_t>({2}, {0, 256})}, {{"to", "b8"}})[0],
                        Tensor::of<bool>({2}, {false, true})));
}

TEST(Cast, RefusesUnknownTypes) {
  EXPECT_THROW(run("cast", {vector_of({1})}, {{"to", "f16"}}), ConfigError);
  EXPECT_THROW(run("cast", {vector_of({1})}), ConfigError);
}

// ---- reductions ----

TEST(Max, GradientGoesToTheFirstOfEqualOnes) {
  const Tensor x = Tensor::of<float>({2, 3}, {1, 5, 5, 2, 2, 0});
  const Attrs rows{{"axes", std::vector<int64_t>{1}}}, columns{{"axes", std::vector<int64_t>{0}}};
  EXPECT_EQ(result("max", {x}, rows), (Values{5, 2}));
  EXPECT_EQ(gradients("max", {x}, rows)[0], (Values{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(gradients("max", {x}, columns)[0], (Values{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(result("min", {x}), (Values{0}));
  EXPECT_EQ(gradients("min", {x}, columns)[0], (Values{1, 0, 0, 0, 1, 1}));
}

TEST(Max, OfInfinitiesAndNan) {
  const Attrs rows{{"axes", std::vector<int64_t>{1}}};
  EXPECT_EQ(result("max", {Tensor::of<float>({1, 2}, {-kInf, -kInf})}, rows), (Values{-kInf}));
  EXPECT_TRUE(std::isnan(result("max", {Tensor::of<float>({1, 3}, {1, kNan, 2})}, rows)[0]));
}

TEST(Max, OfNothingIsAnErrorUnlessNoneIsAskedFor) {
  EXPECT_THROW(run("max", {Tensor({0, 3})}), DataError);
  EXPECT_THROW(run("min", {Tensor({3, 0})}, {{"axes", std::vector<int64_t>{1}}}), DataError);
  EXPECT_TRUE(result("max", {Tensor({0, 3})}, {{"axes", std::vector<int64_t>{1}}}).empty());
}

TEST(Softmax, IsStableForLargeInputs) {
  expect_near(result("softmax", {Tensor::of<float>({2, 2}, {1000, 1000, -1000, -1e30F})}),
              {0.5F, 0.5F, 1, 0});
}

TEST(Softmax, AlongTheFirstAxisIsThatOfTheTranspose) {
  const Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 6, 8});
  const Values y = result("softmax", {x}, {{"axis", int64_t{0}}});
  const Values column = result("softmax", {Tensor::of<float>({1, 2}, {2, 6})});
  expect_near({y[1], y[4]}, column, 1e-6F);
}

// ---- losses ----

TEST(CrossEntropy, KnownValuesAndIgnoredRows) {
  const Tensor p = Tensor::of<float>({3, 2}, {0.25F, 0.75F, 0.5F, 0.5F, 0.1F, 0.9F});
  const Tensor label = Tensor::of<int64_t>({3, 1}, {0, -100, 1});
  expect_near(result("cross_entropy", {p, label}), {std::log(4.0F), 0, -std::log(0.9F)});
  expect_near(gradients("cross_entropy", {p, label})[0], {-4, 0, 0, 0, 0, -1 / 0.9F});
  EXPECT_EQ(result("cross_entropy", {p, label}, {{"ignore_index", int64_t{-100}}})[1], 0.0F);
  EXPECT_FALSE(std::signbit(result("cross_entropy", {p, label})[1]));
}

TEST(LogLoss, LabelsAreSharesFromZeroToOne) {
  for (const char* op : {"log_loss", "sigmoid_cross_entropy"}) {
    const Tensor x = vector_of({0.5F, 0.5F, 0.5F});
    EXPECT_NO_THROW(run(op, {x, vector_of({0, 0.25F, 1})})) << op;
    for (const float bad : {2.0F, -1.0F, 1.0001F, kInf, kNan})
      EXPECT_THROW(run(op, {x, vector_of({0, 1, bad})}), DataError) << op << " " << bad;
  }
}

TEST(CrossEntropy, OfAnImpossibleLabelIsFinite) {
  const std::vector<Tensor> in = {Tensor::of<float>({1, 2}, {0, 1}),
                                  Tensor::of<int64_t>({1, 1}, {0})};
  expect_near(result("cross_entropy", in), {-std::log(1e-20F)}, 1e-4F);
  EXPECT_NEAR(gradients("cross_entropy", in)[0][0] / -1e20F, 1.0F, 1e-5F);
}

TEST(CrossEntropy, SoftLabelsWeighTheClasses) {
  const Tensor p = Tensor::of<float>({1, 2}, {0.25F, 0.75F});
  const Tensor label = Tensor::of<float>({1, 2}, {0.5F, 0.5F});
  expect_near(result("cross_entropy", {p, label}, {{"soft_label", int64_t{1}}}),
              {-0.5F * (std::log(0.25F) + std::log(0.75F))});
}

TEST(CrossEntropy, NamesTheRowOfABadLabel) {
  const Tensor p = Tensor::of<float>({2, 2}, {0.5F, 0.5F, 0.5F, 0.5F});
  for (const int64_t bad : {int64_t{2}, int64_t{-1}}) {
    try {
      run("cross_entropy", {p, Tensor::of<int64_t>({2, 1}, {0, bad})});
      FAIL() << "label " << bad << " was accepted";
    } catch (const DataError& e) {
      EXPECT_EQ(e.what(),
                "cross_entropy: label " + std::to_string(bad) + " in row 1, expected 0 to 1");
    }
  }
}

TEST(SigmoidCrossEntropy, IsStableForLargeLogits) {
  const std::vector<Tensor> in = {vector_of({1000, -1000, 1000, -1000, 0}),
                                  vector_of({0, 1, 1, 0, 0.5F})};
  expect_near(result("sigmoid_cross_entropy", in), {1000, 1000, 0, 0, std::log(2.0F)});
  expect_near(gradients("sigmoid_cross_entropy", in)[0], {1, -1, 0, 0, 0});
}

TEST(LogLoss, EpsilonKeepsItFinite) {
  const std::vector<Tensor> in = {vector_of({0, 1, 0, 1, 0.5F}), vector_of({1, 0, 0, 1, 1})};
  const float most = -std::log(1e-4F), least = -std::log(1 + 1e-4F);
  expect_near(result("log_loss", in), {most, most, least, least, -std::log(0.5001F)}, 2e-3F);
  const Values coarse = result("log_loss", in, {{"epsilon", 0.5}});
  EXPECT_NEAR(coarse[0], -std::log(0.5F), 1e-6F);
}

// ---- dropout ----

TEST(Dropout, KeepsItsShareAndScalesIt) {
  const Tensor x = Tensor::of<float>({20000}, Values(20000, 1.0F));
  const auto out = run("dropout", {x}, {{"p", 0.25}});
  const auto mask = out[1].as<uint8_t>();
  size_t kept = 0;
  for (size_t i = 0; i < mask.size(); ++i) {
    kept += mask[i];
    EXPECT_EQ(out[0].as<float>()[i], mask[i] != 0 ? 1.0F / 0.75F : 0.0F);
  }
  EXPECT_NEAR(static_cast<double>(kept) / 20000, 0.75, 0.01);
}

TEST(Dropout, ElementITakesNumberIOfTheStream) {
  const Tensor x = Tensor::of<float>({100}, Values(100, 1.0F));
  const Attrs attrs{{"p", 0.3}};
  const Tensor mask = run("dropout", {x}, attrs, 5)[1];
  const RandomStream stream(5);
  for (size_t i = 0; i < 100; ++i)
    EXPECT_EQ(mask.as<uint8_t>()[i], stream.uniform(i) >= 0.3 ? 1 : 0) << i;
  EXPECT_TRUE(same_bits(mask, run("dropout", {x}, attrs, 5)[1]));
  EXPECT_FALSE(same_bits(mask, run("dropout", {x}, attrs, 6)[1]));
}

TEST(Dropout, TestModes) {
  const Tensor x = vector_of({1, -2, kInf});
  const auto test = [&](const char* mode) {
    return result("dropout", {x}, {{"p", 0.25}, {"mode", mode}, {"is_test", int64_t{1}}});
  };
  EXPECT_EQ(test("upscale_in_train"), (Values{1, -2, kInf}));
  EXPECT_EQ(test("downgrade_in_infer"), (Values{0.75F, -1.5F, kInf}));
}

TEST(Dropout, DowngradeLeavesKeptOnesAloneInTraining) {
  const Tensor x = Tensor::of<float>({50}, Values(50, 3.0F));
  const auto out = run("dropout", {x}, {{"mode", "downgrade_in_infer"}});
  for (size_t i = 0; i < 50; ++i)
    EXPECT_EQ(out[0].as<float>()[i], out[1].as<uint8_t>()[i] != 0 ? 3.0F : 0.0F);
}

TEST(Dropout, AllOrNothing) {
  const Tensor x = vector_of({1, 2, kInf});
  EXPECT_EQ(result("dropout", {x}, {{"p", 0.0}}), (Values{1, 2, kInf}));
  EXPECT_EQ(result("dropout", {x}, {{"p", 1.0}}), (Values{0, 0, 0}));
}

TEST(Dropout, RefusesBadSettings) {
  EXPECT_THROW(run("dropout", {vector_of({1})}, {{"p", 1.5}}), ConfigError);
  EXPECT_THROW(run("dropout", {vector_of({1})}, {{"mode", "upscale"}}), ConfigError);
}

// ---- normalisation ----

struct BatchNormCase {
  Tensor scale = vector_of({2, 1}), bias = vector_of({0, 5});
  Tensor mean = vector_of({10, 20}), variance = vector_of({1, 4});

  std::vector<Tensor> run_on(const Tensor& x, const Attrs& attrs) const {
    return run("batch_norm", {x, scale, bias, mean, variance}, attrs);
  }
};

TEST(BatchNorm, TrainingNormalisesByTheBatchAndMovesTheRunningMoments) {
  // Columns (1, 3) and (2, 6): means 2 and 4, biased variances 1 and 4.
  const auto out = BatchNormCase{}.run_on(Tensor::of<float>({2, 2}, {1, 2, 3, 6}),
                                          {{"momentum", 0.75}, {"epsilon", 0.0}});
  expect_near(values_of(out[0]), {-2, 4, 2, 6});
  expect_near(values_of(out[1]), {8, 16});
  expect_near(values_of(out[2]), {1, 4});
  expect_near(values_of(out[3]), {2, 4});
  expect_near(values_of(out[4]), {1, 0.5F});
}

TEST(BatchNorm, AxesAfterTheChannelAreMoreOfTheBatch) {
  // The numbers above as [1, channels, 2].
  const auto out = BatchNormCase{}.run_on(Tensor::of<float>({1, 2, 2}, {1, 3, 2, 6}),
                                          {{"momentum", 0.75}, {"epsilon", 0.0}});
  expect_near(values_of(out[0]), {-2, 2, 4, 6});
  expect_near(values_of(out[1]), {8, 16});
}

TEST(BatchNorm, ATestTakesTheRunningMomentsAndLeavesThem) {
  const BatchNormCase bn;
  const auto out =
      bn.run_on(Tensor::of<float>({1, 2}, {11, 24}), {{"is_test", int64_t{1}}, {"epsilon", 0.0}});
  expect_near(values_of(out[0]), {2, 7});
  EXPECT_TRUE(same_bits(out[1], bn.mean));
  EXPECT_TRUE(same_bits(out[2], bn.variance));
}

TEST(BatchNorm, AnEmptyBatchLeavesTheRunningMoments) {
  const BatchNormCase bn;
  const auto out = bn.run_on(Tensor({0, 2}), {});
  EXPECT_EQ(out[0].numel(), 0);
  EXPECT_TRUE(same_bits(out[1], bn.mean));
  EXPECT_TRUE(same_bits(out[2], bn.variance));
}

TEST(BatchNorm, IsAccurateFarFromZero) {
  Values x;
  for (int i = 0; i < 8; ++i) {
    x.push_back(10000.0F + static_cast<float>(i));
    x.push_back(0);
  }
  const auto out = BatchNormCase{}.run_on(Tensor::of<float>({8, 2}, x), {{"epsilon", 0.0}});
  EXPECT_NEAR(out[4].as<float>()[0], 1 / std::sqrt(5.25F), 1e-5F);
}

TEST(LayerNorm, EachRowGetsMeanZeroAndVarianceOne) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 3, -10, 10});
  const auto out = run("layer_norm", {x, vector_of({1, 2}), vector_of({0, 1})}, {{"epsilon", 0.0}});
  expect_near(values_of(out[0]), {-1, 3, -1, 3});
  expect_near(values_of(out[1]), {2, 0});
  expect_near(values_of(out[2]), {1, 0.1F});
}

TEST(LayerNorm, AConstantRowIsTheBias) {
  const Tensor x = Tensor::of<float>({1, 3}, {7, 7, 7});
  EXPECT_EQ(result("layer_norm", {x, vector_of({1, 1, 1}), vector_of({1, 2, 3})}),
            (Values{1, 2, 3}));
}

TEST(LayerNorm, RefusesAnAxisOutside) {
  const Tensor x({2, 3}), row({3});
  EXPECT_THROW(run("layer_norm", {x, row, row}, {{"begin_norm_axis", int64_t{2}}}), ConfigError);
  EXPECT_THROW(run("layer_norm", {x, row, row}, {{"begin_norm_axis", int64_t{0}}}), ConfigError);
}

}  // namespace
}  // namespace argosy

#include "argosy/tensor/tensor.h"

#include <gtest/gtest.h>

#include <vector>

#include "argosy/base/rng.h"
#include "argosy/tensor/gemm.h"

namespace argosy {
namespace {

TEST(Shape, InsertsErasesAndCounts) {
  Shape shape{2, 3, 4};
  shape.insert(1, 7);
  EXPECT_EQ(shape, (Shape{2, 7, 3, 4}));
  shape.erase(0);
  EXPECT_EQ(shape, (Shape{7, 3, 4}));
  EXPECT_EQ(shape.numel(), 84);
  EXPECT_EQ((Shape{-1, 3}).numel(), Shape::kAny);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_THROW(shape.axis(3), ConfigError);
}

TEST(Shape, BroadcastsByNumPysRules) {
  EXPECT_EQ(broadcast({3, 1}, {4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast({-1, 4}, {4}), (Shape{-1, 4}));
  EXPECT_EQ(broadcast({2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_THROW(broadcast({3, 2}, {3, 4}), ConfigError);
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  Tensor a = Tensor::of<float>({2}, {1, 2});
  Tensor shared = a, copy = a.clone();
  a.as<float>()[0] = 9;
  EXPECT_EQ(shared.as<float>()[0], 9);
  EXPECT_EQ(copy.as<float>()[0], 1);
}

TEST(Tensor, WrapsCallersMemory) {
  std::vector<double> mine{1, 2, 3, 4};
  Tensor view = Tensor::wrap(mine.data(), {2, 2}, DType::f64);
  view.as<double>()[3] = 7;
  EXPECT_EQ(mine[3], 7);
  EXPECT_EQ(view.reshape({4}).as<double>().data(), mine.data());
}

TEST(Tensor, RefusesAnotherTypeAndAWrongCount) {
  const Tensor a({2, 2});
  EXPECT_THROW(a.as<double>(), ConfigError);
  EXPECT_THROW(a.reshape({3}), ConfigError);
  EXPECT_THROW(Tensor::of<float>({3}, {1, 2}), ConfigError);
  EXPECT_THROW(Tensor({-1, 2}), ConfigError);
}

/// The float product against the plain loop in double, over shapes on both sides of every choice.
TEST(Gemm, AgreesWithThePlainLoop) {
  for (const auto& [m, n, k] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 1, 1}, {3, 5, 7}, {64, 10, 200}, {128, 1, 32}, {130, 120, 110}, {4, 3, 0}}) {
    for (int flags = 0; flags < 16; ++flags) {
      const GemmSpec spec{.m = m,
                          .n = n,
                          .k = k,
                          .trans_a = (flags & 1) != 0,
                          .trans_b = (flags & 2) != 0,
                          .bias = (flags & 4) != 0,
                          .relu = (flags & 8) != 0};
      const RandomStream random(static_cast<uint64_t>(m * n + flags));
      std::vector<double> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)),
          bias(static_cast<size_t>(n));
      uint64_t draw = 0;
      for (auto* values : {&a, &b, &bias})
        for (double& value : *values)
          value = static_cast<double>(static_cast<float>(random.uniform(draw++) - 0.5));
      const std::vector<float> fa(a.begin(), a.end()), fb(b.begin(), b.end()),
          fbias(bias.begin(), bias.end());
      std::vector<float> c(static_cast<size_t>(m * n), 99.0F);
      std::vector<double> expected(c.size());
      gemm(spec, fa.data(), fb.data(), fbias.data(), c.data());
      gemm(spec, a.data(), b.data(), bias.data(), expected.data());
      for (size_t i = 0; i < c.size(); ++i)
        ASSERT_NEAR(c[i], expected[i], 1e-5)
            << m << "x" << n << "x" << k << " flags " << flags << " at " << i;
    }
  }
}

}  // namespace
}  // namespace argosy

#include "argosy/tensor/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/isa.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

template <class T>
void finds_each_wrong_value() {
  using Limit = std::numeric_limits<T>;
  for (const Isa cap : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    const ScopedIsaCap capped(cap);
    for (const size_t size : {size_t{1}, size_t{7}, size_t{64}, size_t{100}}) {
      std::vector<T> values(size, Limit::max());
      values[size / 2] = Limit::lowest();
      values.back() = Limit::denorm_min();
      EXPECT_TRUE(all_finite(std::span<const T>(values)));
      for (size_t at = 0; at < size; ++at)
        for (const T bad : {Limit::infinity(), -Limit::infinity(), Limit::quiet_NaN()}) {
          std::vector<T> wrong = values;
          wrong[at] = bad;
          EXPECT_FALSE(all_finite(std::span<const T>(wrong))) << at << " of " << size;
        }
    }
  }
}

TEST(Finite, FindsEachWrongValueWithAnyInstructions) {
  finds_each_wrong_value<float>();
  finds_each_wrong_value<double>();
  EXPECT_TRUE(all_finite(std::span<const float>()));
  EXPECT_TRUE(all_finite(Tensor::of<int64_t>({1}, {-1})));
}

TEST(Finite, PoliciesAreWordsOrFlags) {
  EXPECT_EQ(parse_check_nan("fail"), CheckNan::fail);
  EXPECT_EQ(parse_check_nan("True"), CheckNan::fail);
  EXPECT_EQ(parse_check_nan("warn"), CheckNan::warn);
  EXPECT_EQ(parse_check_nan("off"), CheckNan::off);
  EXPECT_EQ(parse_check_nan("False"), CheckNan::off);
  EXPECT_EQ(message_of<ConfigError>([] { parse_check_nan("fial"); }),
            "check_nan is 'fial', expected fail, warn or off, did you mean fail?");
}

}  // namespace
}  // namespace argosy

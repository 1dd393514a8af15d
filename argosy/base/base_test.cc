#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "argosy/base/bytes.h"
#include "argosy/base/call.h"
#include "argosy/base/denormals.h"
#include "argosy/base/function_ref.h"
#include "argosy/base/hash.h"
#include "argosy/base/isa.h"
#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

TEST(Check, ThrowsItsKindWithAllParts) {
  EXPECT_EQ(
      message_of<ConfigError>([] { check<ConfigError>(false, "batch ", 0, ", expected more"); }),
      "batch 0, expected more");
  EXPECT_NO_THROW(check(true, "unused"));
}

TEST(Call, ReadsPositionsNamesAndDefaults) {
  const Call call("adam(0.8, beta2 = 0.99)");
  EXPECT_EQ(call.name(), "adam");
  EXPECT_EQ(call.number(0, "beta1", 0.9), 0.8);
  EXPECT_EQ(call.number(1, "beta2", 0.999), 0.99);
  EXPECT_EQ(call.number(2, "epsilon", 1e-8), 1e-8);
  EXPECT_EQ(Call("zeros").name(), "zeros");
  EXPECT_EQ(Call("assign(1, -2.5, 3e-1)").numbers(), (std::vector<double>{1, -2.5, 0.3}));
}

TEST(Call, RefusesWhatIsNotACallAndQuotesIt) {
  for (const char* text : {"", "adam(", "adam(1,,2)", "3(4)", "adam(beta1=)", "a b"})
    EXPECT_NE(message_of<ConfigError>([&] { Call call(text); }).find(std::string("'") + text + "'"),
              std::string::npos)
        << text;
}

TEST(Call, NamesTheNearestArgument) {
  EXPECT_EQ(message_of<ConfigError>([] {
              Call("adam(bta1=0.9)").expect("rule", 3, {"beta1", "beta2"});
            }),
            "'adam(bta1=0.9)': rule adam has no argument 'bta1', did you mean beta1?");
  EXPECT_EQ(message_of<ConfigError>([] { static_cast<void>(Call("f(x1)").number(0, "rate")); }),
            "'f(x1)': 'x1' is not a number");
}

TEST(RandomStream, NumberIsAFunctionOfStreamAndIndex) {
  const RandomStream a(7), b(7), other(8);
  EXPECT_EQ(a.bits(123), b.bits(123));
  EXPECT_NE(a.bits(123), other.bits(123));
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 10000; ++i) seen.insert(a.bits(i));
  EXPECT_EQ(seen.size(), 10000U);
}

TEST(RandomStream, UniformAndNormalHaveTheirMoments) {
  const RandomStream random(1);
  constexpr int kDraws = 100000;
  double sum = 0, normal_sum = 0, normal_squares = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double u = random.uniform(i), z = random.normal(i);
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    normal_sum += z;
    normal_squares += z * z;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
  EXPECT_NEAR(normal_sum / kDraws, 0.0, 0.02);
  EXPECT_NEAR(normal_squares / kDraws, 1.0, 0.02);
}

TEST(Hash, RunningHashEqualsTheWhole) {
  const std::string text = "one and two";
  RunningHash running;
  running.add(std::as_bytes(std::span(text).first(4)));
  running.add(std::as_bytes(std::span(text).subspan(4)));
  EXPECT_EQ(running.digest(), hash64(text));
  EXPECT_EQ(hash64(std::string_view("")), 0x2d06800538d394c2ULL)
      << "XXH3 of nothing: formats rest on it";
}

TEST(ByteSource, RefusesToReadPastTheEnd) {
  ByteBuffer out;
  out.put(uint32_t{5});
  out.put_text("abc");
  ByteSource in(out.bytes(), "part.bin");
  EXPECT_EQ(in.get<uint32_t>(), 5U);
  EXPECT_EQ(in.get_text(), "abc");
  EXPECT_EQ(message_of<DataError>([&] { in.get<uint64_t>(); }),
            "part.bin: ends early, 8 bytes expected and 0 left");
}

TEST(FunctionRef, CallsWhatItBorrows) {
  int calls = 0;
  auto count = [&](int n) { return calls += n; };
  FunctionRef<int(int)> ref = count;
  EXPECT_TRUE(static_cast<bool>(ref));
  EXPECT_EQ(ref(3), 3);
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(static_cast<bool>(FunctionRef<int(int)>()));
}

TEST(Isa, CapLowersAndGivesBack) {
  const Isa machine = isa();
  {
    const ScopedIsaCap cap(Isa::baseline);
    EXPECT_EQ(isa(), Isa::baseline);
  }
  EXPECT_EQ(isa(), machine);
}

TEST(FlushDenormals, HoldsOnlyInItsScope) {
  volatile float tiny = 1e-38F;
  {
    const FlushDenormals flush;
    EXPECT_EQ(tiny * 0.01F, 0.0F);
  }
  EXPECT_NE(tiny * 0.01F, 0.0F);
}

}  // namespace
}  // namespace argosy

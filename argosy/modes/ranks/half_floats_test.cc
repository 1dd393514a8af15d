#include "argosy/modes/ranks/half_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

uint16_t packed(HalfKind kind, float value) {
  uint16_t half = 0;
  to_half(kind, {&value, 1}, {&half, 1});
  return half;
}

float unpacked(HalfKind kind, uint16_t half) {
  float value = 0;
  from_half(kind, {&half, 1}, {&value, 1});
  return value;
}

TEST(HalfFloats, EveryOneComesBackAsItWas) {
  for (const HalfKind kind : {HalfKind::bf16, HalfKind::f16})
    for (uint32_t half = 0; half <= 0xFFFF; ++half) {
      const float value = unpacked(kind, static_cast<uint16_t>(half));
      if (std::isnan(value)) continue;
      ASSERT_EQ(packed(kind, value), half) << value;
    }
}

TEST(HalfFloats, AreWhatTheStandardsSay) {
  EXPECT_EQ(packed(HalfKind::bf16, 1.0F), 0x3F80);
  EXPECT_EQ(packed(HalfKind::bf16, -2.5F), 0xC020);
  EXPECT_EQ(packed(HalfKind::f16, 1.0F), 0x3C00);
  EXPECT_EQ(packed(HalfKind::f16, -2.5F), 0xC100);
  EXPECT_EQ(packed(HalfKind::f16, 65504.0F), 0x7BFF);
  EXPECT_EQ(packed(HalfKind::f16, 0x1p-24F), 0x0001);
  EXPECT_EQ(unpacked(HalfKind::f16, 0x0001), 0x1p-24F);
}

TEST(HalfFloats, RoundToTheNearestAndTiesToEven) {
  EXPECT_EQ(packed(HalfKind::bf16, std::bit_cast<float>(0x3F808000U)), 0x3F80);
  EXPECT_EQ(packed(HalfKind::bf16, std::bit_cast<float>(0x3F818000U)), 0x3F82);
  EXPECT_EQ(packed(HalfKind::bf16, std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_EQ(packed(HalfKind::f16, 1.0F + 0x1p-11F), 0x3C00);
  EXPECT_EQ(packed(HalfKind::f16, 1.0F + 0x3p-11F), 0x3C02);
  EXPECT_EQ(packed(HalfKind::f16, 1.0F + 0x1.2p-11F), 0x3C01);
  EXPECT_EQ(packed(HalfKind::f16, 65519.0F), 0x7BFF);
}

TEST(HalfFloats, KeepWhatIsNoNumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const HalfKind kind : {HalfKind::bf16, HalfKind::f16}) {
    EXPECT_EQ(unpacked(kind, packed(kind, -infinity)), -infinity);
    EXPECT_TRUE(std::isnan(unpacked(kind, packed(kind, std::nanf("")))));
  }
  EXPECT_EQ(unpacked(HalfKind::f16, packed(HalfKind::f16, 65520.0F)), infinity);
}

TEST(HalfFloats, AreAdded) {
  const std::vector<uint16_t> halves = {0x3C00, 0x4000};
  std::vector<float> sums = {0.5F, -1};
  add_half(HalfKind::f16, halves, sums);
  EXPECT_EQ(sums, (std::vector<float>{1.5F, 1}));
}

TEST(HalfFloats, AnUnknownKindIsRefused) {
  EXPECT_EQ(message_of<ConfigError>([] { half_kind("f8"); }),
            "gradients are sent as 'f8', expected f32, bf16 or f16");
}

}  // namespace
}  // namespace argosy

#include "argosy/data/scanner.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <random>

namespace argosy {
namespace {

std::optional<uint64_t> id_of(std::string_view text) {
  Scanner::Pad pad;
  Scanner in(text, pad);
  const auto value = in.id();
  return in.at_end() ? value : std::nullopt;
}

std::optional<float> real_of(std::string_view text) {
  Scanner::Pad pad;
  Scanner in(text, pad);
  const auto value = in.real();
  return in.at_end() ? value : std::nullopt;
}

/// Reads the text alone, at the end of a longer line and in the middle of one.
template <class Read>
void expect_everywhere(const std::string& text, Read read) {
  Scanner::Pad pad;
  Scanner alone(text, pad);
  const auto value = read(alone);
  ASSERT_TRUE(value && alone.at_end()) << text;
  for (const char* around : {"x", "xxxxxxxxxxx"}) {
    for (const std::string& after : {std::string(), " 1" + std::string(around)}) {
      std::string line = around;
      line.append(text).append(after);
      Scanner in(line, pad);
      in.skip(std::string_view(around).size());
      EXPECT_EQ(read(in), value) << line;
      EXPECT_EQ(in.left(), after.size()) << line;
    }
  }
}

TEST(Scanner, ReadsIdsOfTheWholeRange) {
  EXPECT_EQ(id_of("0"), 0U);
  EXPECT_EQ(id_of("12345678"), 12345678U);
  EXPECT_EQ(id_of("123456789"), 123456789U);
  EXPECT_EQ(id_of("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(id_of("-1"), UINT64_MAX) << "int64 is read as uint64";
  EXPECT_EQ(id_of("-9223372036854775808"), uint64_t{1} << 63);
  EXPECT_EQ(id_of("000000000000000000000000000007"), 7U);
  const unsigned seed = 11;
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t value = random() >> (random() % 64);
    ASSERT_EQ(id_of(std::to_string(value)), value) << "seed " << seed;
    expect_everywhere(std::to_string(value), [](Scanner& in) { return in.id(); });
  }
}

TEST(Scanner, RefusesWhatIsNoId) {
  for (const char* text : {"", "-", "--1", "a", "1a", "1.5", "+1", " 1", "18446744073709551616",
                           "99999999999999999999", "123456789012345678901", "-9223372036854775809",
                           "-18446744073709551615", "\xb2\xb3", "1\xff", "0x10"})
    EXPECT_EQ(id_of(text), std::nullopt) << text;
}

TEST(Scanner, ReadsFloatsCorrectlyRounded) {
  EXPECT_EQ(real_of("0.1234"), 0.1234F);
  EXPECT_EQ(real_of("-0.5"), -0.5F);
  EXPECT_TRUE(std::signbit(*real_of("-0.0")));
  EXPECT_EQ(real_of(".5"), 0.5F);
  EXPECT_EQ(real_of("5."), 5.0F);
  EXPECT_EQ(real_of("+1"), 1.0F);
  EXPECT_EQ(real_of("1e3"), 1000.0F);
  EXPECT_EQ(real_of("-1.5E-3"), -0.0015F);
  EXPECT_EQ(real_of("0.00497512437811"), 0.00497512437811F);
  EXPECT_EQ(real_of("5.96732496653e-05"), 5.96732496653e-05F);
  EXPECT_EQ(real_of("3.4028234e38"), 3.4028234e38F);
  EXPECT_EQ(real_of("1e-45"), 1e-45F);
  EXPECT_EQ(real_of("1e-60"), 0.0F);
  EXPECT_EQ(real_of("12345678901234567890123456789"), 12345678901234567890123456789.0F);
  // Half way between two floats plus a little: rounding by way of double would go wrong.
  EXPECT_EQ(real_of("1.000000059604644775390625"), 1.0F);
  EXPECT_EQ(real_of("1.00000005960464477539062500000001"), std::nextafter(1.0F, 2.0F));
  EXPECT_EQ(real_of("1.00000017881393432617187499"), std::nextafter(1.0F, 2.0F));
}

TEST(Scanner, AgreesWithTheStandardLibraryOnRandomFloats) {
  const unsigned seed = 12;
  std::mt19937_64 random(seed);
  std::array<char, 64> text;
  for (int i = 0; i < 100000; ++i) {
    const double magnitude = std::pow(10.0, static_cast<double>(random() % 24) - 12);
    const double value = (static_cast<double>(random() >> 11) * 0x1p-52 - 1) * magnitude;
    const int precision = static_cast<int>(random() % 20);
    const auto format =
        random() % 4 == 0 ? std::chars_format::scientific : std::chars_format::fixed;
    char* const end =
        std::to_chars(text.data(), text.data() + text.size(), value, format, precision).ptr;
    float wanted = 0;
    std::from_chars(text.data(), end, wanted);
    const std::string shown(text.data(), end);
    ASSERT_EQ(real_of(shown), wanted) << shown << ", seed " << seed;
    if (i % 16 == 0) expect_everywhere(shown, [](Scanner& in) { return in.real(); });
  }
}

TEST(Scanner, RefusesWhatIsNoFiniteNumber) {
  for (const char* text :
       {"",    "-",     "+",   ".",    "-.",       "--5",  "+-5",   "-+5",   "nan",
        "NaN", "-nan",  "inf", "-inf", "infinity", "1e39", "-1e39", "1e400", "1e-400x",
        "abc", "1.2.3", "1e",  "1e+",  "0x1p3",    "1,5",  "e5",    "\xb1",  "1.\xff"})
    EXPECT_EQ(real_of(text), std::nullopt) << text;
}

TEST(Scanner, NeverLeavesTheLineOnRandomBytes) {
  const unsigned seed = 13;
  std::mt19937_64 random(seed);
  constexpr std::string_view kLikely = "0123456789.-+eE: \t\xff";
  for (int i = 0; i < 50000; ++i) {
    std::vector<char> bytes(random() % 24);  // exactly sized, so that a sanitizer sees each step
    for (char& c : bytes) c = kLikely[random() % kLikely.size()];
    Scanner::Pad pad;
    Scanner in({bytes.data(), bytes.size()}, pad);
    while (!in.at_end()) {
      const size_t before = in.left();
      const bool read = random() % 2 == 0 ? in.id().has_value() : in.real().has_value();
      ASSERT_LE(in.left(), before) << "seed " << seed;
      if (!read) in.skip(1);
    }
  }
}

}  // namespace
}  // namespace argosy

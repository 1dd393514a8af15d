#include "argosy/base/percent.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

TEST(Percent, EveryByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string escaped = percent_escape(all, is_lower);
  EXPECT_EQ(escaped.size(), 26 + 230 * 3U);
  EXPECT_EQ(percent_unescape(escaped), all);
  EXPECT_EQ(percent_escape("a b%", is_lower), "a%20b%25");
  EXPECT_EQ(percent_escape("50%", [](char) { return true; }), "50%25");
}

TEST(Percent, WhatItDoesNotWriteIsRefused) {
  EXPECT_EQ(percent_unescape("a%2fb%2Fc"), "a/b/c");
  for (const char* bad : {"%", "%2", "a%2g", "a%+1", "%-1"})
    EXPECT_EQ(percent_unescape(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace argosy

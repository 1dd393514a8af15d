#include "argosy/base/memory_size.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

TEST(MemorySize, IsReadInBytesOrWithAUnit) {
  EXPECT_EQ(parse_memory("65536", "memory"), 65536U);
  EXPECT_EQ(parse_memory("64K", "memory"), 65536U);
  EXPECT_EQ(parse_memory("3M", "memory"), uint64_t{3} << 20);
  EXPECT_EQ(parse_memory("2G", "memory"), uint64_t{2} << 30);
}

TEST(MemorySize, IsRefusedWhereItIsNone) {
  for (const char* const text :
       {"", "G", "0", "-1", "1.5G", "2 G", "2T", "99999999999999999999", "99999999999G"})
    EXPECT_EQ(message_of<ConfigError>([&] { parse_memory(text, "memory"); }),
              "memory is '" + std::string(text) + "', expected bytes such as 2G, 512M or 65536");
}

TEST(MemorySize, IsWrittenInTheLargestUnitThatDividesIt) {
  EXPECT_EQ(memory_text(uint64_t{2} << 30), "2G");
  EXPECT_EQ(memory_text(uint64_t{1536} << 20), "1536M");
  EXPECT_EQ(memory_text(65536), "64K");
  EXPECT_EQ(memory_text(100), "100");
}

}  // namespace
}  // namespace argosy

#include "argosy/plan/memory_limit.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

std::vector<ps::TableSpec> three_tables() {
  return {{.name = "a", .dim = 4}, {.name = "b", .dim = 12}, {.name = "c", .store = "log"}};
}

std::string stores_of(const std::vector<ps::TableSpec>& tables) {
  std::string all;
  for (const ps::TableSpec& spec : tables) all += spec.store + " ";
  return all;
}

TEST(MemoryLimit, IsSharedOutByTheBytesOfRows) {
  auto tables = three_tables();
  limit_memory(tables, {{"a", {.size = 1000}}}, uint64_t{4} << 20);
  EXPECT_EQ(stores_of(tables), "log(memory=1M) log(memory=3M) log ");
}

TEST(MemoryLimit, IsSharedOutBySizesWhereAllAreKnown) {
  auto tables = three_tables();
  limit_memory(tables, {{"a", {.size = 9000}}, {"b", {.size = 1000}}}, uint64_t{4} << 20);
  EXPECT_EQ(stores_of(tables), "log(memory=3M) log(memory=1M) log ");
}

TEST(MemoryLimit, OfZeroIsNone) {
  auto tables = three_tables();
  limit_memory(tables, {}, 0);
  EXPECT_EQ(stores_of(tables), "memory memory log ");
}

TEST(MemoryLimit, IsRefusedWhereItIsNothing) {
  auto tables = three_tables();
  EXPECT_EQ(message_of<ConfigError>([&] { limit_memory(tables, {}, 2048); }),
            "a memory limit of 2K leaves table 'a' less than 1K of memory");
}

}  // namespace
}  // namespace argosy

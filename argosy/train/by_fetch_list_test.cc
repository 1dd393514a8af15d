#include "argosy/train/by_fetch_list.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

TEST(ByFetchList, KeepsTheListsThatWereAskedForLast) {
  ByFetchList<int> kept;
  int made = 0;
  const auto ask = [&](int32_t variable) {
    return kept.get(std::vector<VarId>{VarId{variable}, VarId{0}},
                    [&] { return std::make_unique<int>(++made); });
  };
  EXPECT_EQ(ask(1), 1);
  for (int32_t other = 2; other <= 16; ++other) ask(other);
  EXPECT_EQ(ask(1), 1);  // there are 16, and this one is the last again
  EXPECT_EQ(made, 16);
  EXPECT_EQ(ask(17), 17);
  EXPECT_EQ(ask(1), 1);
  EXPECT_EQ(ask(2), 18);  // the oldest had to go
}

TEST(ByFetchList, TellsOrdersAndLengthsApart) {
  ByFetchList<int> kept;
  int made = 0;
  const auto make = [&] { return std::make_unique<int>(++made); };
  const VarId a{1}, b{2};
  EXPECT_EQ(kept.get(std::vector<VarId>{a, b}, make), 1);
  EXPECT_EQ(kept.get(std::vector<VarId>{b, a}, make), 2);
  EXPECT_EQ(kept.get(std::vector<VarId>{a}, make), 3);
  EXPECT_EQ(kept.get({}, make), 4);
  EXPECT_EQ(kept.get(std::vector<VarId>{a, b}, make), 1);
}

}  // namespace
}  // namespace argosy

#include "argosy/ps/placement.h"

#include <gtest/gtest.h>

#include <functional>

namespace argosy::ps {
namespace {

std::vector<ParameterSpec> parameters() {
  return {{.name = "w", .elements = 12, .unit = 4}, {.name = "b", .elements = 3}};
}
std::vector<TableSpec> tables() { return {{.name = "ids", .dim = 2}, {.name = "words", .dim = 4}}; }

TEST(Placement, CutsParametersIntoWholeUnitsAndDealsThemOut) {
  const Placement placement = place(parameters(), tables(), {0, 1}, 2, {.min_block = 4});
  EXPECT_EQ(placement.text(),
            "w rule sgd lr 0.01 init zeros seed 0 unit 4\n"
            "  0..8 on server 0\n"
            "  8..12 on server 1\n"
            "b rule sgd lr 0.01 init zeros seed 0 unit 1\n"
            "  0..3 on server 0\n"
            "ids rule sgd lr 0.01 init zeros seed 0 rows of 2 by key set 0 over 2 servers\n"
            "words rule sgd lr 0.01 init zeros seed 0 rows of 4 by key set 1 over 2 servers\n");
  const std::vector<ParameterSpec> held = placement.slices_of(1);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].first, 8U);
  EXPECT_EQ(held[0].elements, 4U);
  EXPECT_EQ(held[0].of, 12U);
}

TEST(Placement, ProcessesThatDoNotFitHaveOtherHashes) {
  using Change = std::function<void(Placement&)>;
  const Placement one = place(parameters(), tables(), {0, 1}, 2, {.min_block = 4});
  for (const Change& change : {Change([](Placement& p) { p.parameters[1].rule = "adam"; }),
                               Change([](Placement& p) { p.slices[1].server = 0; }),
                               Change([](Placement& p) { p.slices[1].begin = 4; }),
                               Change([](Placement& p) { p.tables[0].dim = 3; }),
                               Change([](Placement& p) { p.tables[0].seed = 1; }),
                               Change([](Placement& p) { p.tables[0].entry = "count_filter(2)"; }),
                               Change([](Placement& p) { p.key_sets[1] = 0; }),
                               Change([](Placement& p) { std::swap(p.tables[0], p.tables[1]); })}) {
    Placement other = one;
    change(other);
    EXPECT_NE(other.hash(), one.hash()) << other.text();
  }
}

TEST(Placement, WhereAServerKeepsItsRowsIsItsOwnMatter) {
  const Placement one = place(parameters(), tables(), {0, 1}, 2);
  Placement other = one;
  other.tables[0].store = "log(memory=1G)";
  EXPECT_EQ(other.hash(), one.hash());
}

}  // namespace
}  // namespace argosy::ps

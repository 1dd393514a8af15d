#include "argosy/data/columns.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy {
namespace {

std::vector<SlotSpec> three_slots() {
  return {{"tags", SlotKind::ids, 0, EmptySlot::empty},
          {"dense", SlotKind::floats, 2},
          {"label", SlotKind::ids, 1, EmptySlot::pad}};
}

void add(Columns& out, std::vector<uint64_t> tags, std::vector<float> dense) {
  std::ranges::copy(tags, out.add_ids(0, tags.size()));
  std::ranges::copy(dense, out.add_floats(1, dense.size()));
}

TEST(Columns, KeepsValuesBySlotWithOffsets) {
  Columns out(three_slots());
  add(out, {7, 8, 9}, {0.5F, 1.5F});
  *out.add_ids(2, 1) = 1;
  EXPECT_EQ(out.commit(), std::nullopt);
  add(out, {}, {2, 3});
  EXPECT_EQ(out.commit(), std::nullopt);
  EXPECT_EQ(out.rows(), 2U);
  EXPECT_TRUE(std::ranges::equal(out.ids(0), std::vector<uint64_t>{7, 8, 9}));
  EXPECT_TRUE(std::ranges::equal(out.offsets(0), std::vector<uint32_t>{0, 3, 3}));
  EXPECT_TRUE(std::ranges::equal(out.floats(1), std::vector<float>{0.5, 1.5, 2, 3}));
  EXPECT_TRUE(out.offsets(1).empty());
  EXPECT_TRUE(std::ranges::equal(out.ids(2), std::vector<uint64_t>{1, 0})) << "padded with 0";
}

TEST(Columns, AnInstanceThatBreaksItsSlotsLeavesNothing) {
  Columns out(three_slots());
  add(out, {7}, {1, 2});
  EXPECT_EQ(out.commit(), std::nullopt);
  add(out, {8, 9}, {1, 2, 3});
  EXPECT_EQ(out.commit(), "slot 'dense': expected 2 values, found 3");
  add(out, {1, 2, 3}, {1});
  out.rollback();
  EXPECT_EQ(out.rows(), 1U);
  EXPECT_EQ(out.ids(0).size(), 1U);
  EXPECT_EQ(out.floats(1).size(), 2U);
  EXPECT_EQ(out.added(0), 0U);
}

TEST(Columns, AppendsRowsOfOthersAndKeepsMemory) {
  Columns from(three_slots()), to(three_slots());
  for (uint64_t i = 0; i < 5000; ++i) {
    add(from, std::vector<uint64_t>(i % 4, i), {static_cast<float>(i), 0});
    ASSERT_EQ(from.commit(), std::nullopt);
  }
  for (size_t row = 5000; row-- > 0;) to.append(from, row);
  ASSERT_EQ(to.rows(), 5000U);
  for (size_t row = 0; row < 5000; ++row) {
    const size_t source = 4999 - row;
    ASSERT_EQ(to.offsets(0)[row + 1] - to.offsets(0)[row], source % 4);
    ASSERT_EQ(to.floats(1)[2 * row], static_cast<float>(source));
  }
  const float* const before = to.floats(1).data();
  to.clear();
  EXPECT_EQ(to.rows(), 0U);
  for (size_t row = 0; row < 5000; ++row) to.append(from, row);
  EXPECT_EQ(to.floats(1).data(), before);
}

TEST(Columns, NamesThatCannotBeReadBackAreRefused) {
  for (const char* name : {"a b", "a,b", "a(b", "a]", "{a", "a=b", "a\"", "a\tb", "a\n", ""})
    EXPECT_THROW(Columns({{.name = name, .width = 1}}), ConfigError) << name;
  for (const char* name : {"0", "fc_0.w_0", "a@GRAD", "a/b", "a-b", "C1", "\xe5\xba\x97"})
    EXPECT_NO_THROW(Columns({{.name = name, .width = 1}})) << name;
}

TEST(Columns, RefusesSlotsThatContradictThemselves) {
  EXPECT_THROW(Columns({}), ConfigError);
  EXPECT_THROW(Columns({{"a"}, {"a"}}), ConfigError);
  EXPECT_THROW(Columns({{"a", SlotKind::ids, 2, EmptySlot::empty}}), ConfigError);
}

}  // namespace
}  // namespace argosy

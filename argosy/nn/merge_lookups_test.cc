#include "argosy/nn/merge_lookups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "argosy/graph/executor.h"
#include "argosy/nn/layers.h"

namespace argosy::nn {
namespace {

size_t count(const Program& program, std::string_view op) {
  return static_cast<size_t>(
      std::ranges::count(program.nodes, op, [](const Node& node) { return node.op->name; }));
}

Var lookup(Builder& g, const std::string& slot, const std::string& table = "table") {
  return embedding(g, std::array{slot}, table, 2, {.init = "uniform(-1, 1)"});
}

/// Three slots looked up one by one, and a dense part, as scripts write it.
Var three_and_dense(Builder& g) {
  const std::array parts{lookup(g, "C1"), lookup(g, "C2"), lookup(g, "C3"),
                         g.input("dense", {{-1, 3}})};
  return concat(parts, 1);
}

TEST(MergeLookups, OfOneTableBecomeOne) {
  Builder g;
  const Var x = three_and_dense(g);
  g.output(x);
  const MergedLookups merged = merge_lookups(g.program());
  EXPECT_EQ(count(merged.program, "embedding"), 1u);
  const VarId index = merged.program.find("table.index");
  ASSERT_TRUE(index);
  EXPECT_EQ(merged.program.var(index).from, "index(table, C1, C2, C3)");
  EXPECT_EQ(merged.program.outputs[0], merged.now[x.id.index()]);
}

TEST(MergeLookups, GiveTheSameValuesTogetherAndAlone) {
  Builder g;
  const Var x = three_and_dense(g);
  const VarId second = [&] {  // the result of the second lookup
    std::vector<VarId> found;
    for (const Node& node : g.program().nodes)
      if (node.op->name == "embedding") found.push_back(node.out[0]);
    return found.at(1);
  }();
  g.output(x);
  const MergedLookups merged = merge_lookups(g.program());
  Program asked = merged.program;
  asked.outputs.push_back(merged.now[second.index()]);

  const Tensor rows = Tensor::of<float>({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor dense = Tensor::of<float>({2, 3}, {.1F, .2F, .3F, .4F, .5F, .6F});
  Executor alone(g.program());
  alone.run({{"table", rows},
             {"dense", dense},
             {"table.index", Tensor::of<int32_t>({2, 1}, {0, 3})},
             {"table.index.1", Tensor::of<int32_t>({2, 1}, {1, 1})},
             {"table.index.2", Tensor::of<int32_t>({2, 1}, {2, 0})}});
  Executor together(asked);
  together.run({{"table", rows},
                {"dense", dense},
                {"table.index", Tensor::of<int32_t>({2, 3}, {0, 1, 2, 3, 1, 0})}});
  EXPECT_TRUE(same_bits(alone.value(x.id), together.value(asked.outputs[0])));
  EXPECT_TRUE(
      same_bits(together.value(asked.outputs[1]), Tensor::of<float>({2, 1, 2}, {2, 3, 2, 3})));
}

TEST(MergeLookups, OfOtherTablesStayApart) {
  Builder g;
  const std::array parts{lookup(g, "C1", "a"), lookup(g, "C2", "a"), lookup(g, "C3", "b"),
                         lookup(g, "C4", "b")};
  g.output(concat(parts, 1));
  const MergedLookups merged = merge_lookups(g.program());
  EXPECT_EQ(count(merged.program, "embedding"), 2u);
  EXPECT_EQ(count(merged.program, "concat"), 1u);
}

TEST(MergeLookups, ThatGoElsewhereTooStayAlone) {
  Builder g;
  const Var shared = lookup(g, "C1");
  const std::array parts{shared, lookup(g, "C2")};
  g.output(concat(parts, 1));
  g.output(mean(shared));
  EXPECT_EQ(count(merge_lookups(g.program()).program, "embedding"), 2u);
}

TEST(MergeLookups, ArePooledTogether) {
  Builder g;
  const auto pooled = [&](const std::string& slot) {
    return embedding(g, std::array{slot}, "table", 2, {.pool = "sum"});
  };
  const std::array parts{pooled("C1"), pooled("C2")};
  g.output(concat(parts, 1));
  const MergedLookups merged = merge_lookups(g.program());
  EXPECT_EQ(count(merged.program, "gather_pool"), 1u);
  EXPECT_TRUE(merged.program.find("table.offsets"));
}

TEST(MergeLookups, LeaveAProgramWithoutAnyAsItWas) {
  Builder g;
  g.output(linear(g.input("x", {{-1, 4}}), 2, "fc"));
  EXPECT_EQ(merge_lookups(g.program()).program, g.program());
}

}  // namespace
}  // namespace argosy::nn

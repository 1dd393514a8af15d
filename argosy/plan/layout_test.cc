#include <gtest/gtest.h>

#include "argosy/graph/builder.h"
#include "argosy/plan/plan.h"

namespace argosy {
namespace {

/// Whether the input "label" of a program with this loss is binary.
bool is_binary(const std::function<Var(Builder&, Var p, Var label)>& loss) {
  Builder g;
  const Var p = g.input("p", {{-1, 1}}), label = g.input("label", {{-1, 1}});
  g.output(loss(g, p, label));
  const BatchLayout layout = layout_of(g.program()).layout;
  const auto found = std::ranges::find(layout.columns, "label", &ColumnFeed::input);
  EXPECT_NE(found, layout.columns.end());
  EXPECT_FALSE(std::ranges::find(layout.columns, "p", &ColumnFeed::input)->binary);
  return found->binary;
}

TEST(Layout, TheLabelOfALogLossIsBinaryUnlessItIsComputed) {
  for (const char* op : {"log_loss", "sigmoid_cross_entropy"}) {
    EXPECT_TRUE(is_binary([&](Builder& g, Var p, Var label) { return g.apply(op, {p, label}); }));
    EXPECT_TRUE(is_binary([&](Builder& g, Var p, Var label) {
      const Var shaped = g.apply("reshape", {label}, {{"shape", std::vector<int64_t>{-1, 1}}});
      return g.apply(op, {p, g.apply("cast", {shaped}, {{"to", std::string("f32")}})});
    }));
    EXPECT_FALSE(is_binary([&](Builder& g, Var p, Var label) {
      return g.apply(op, {p, g.apply("scale", {label}, {{"scale", 0.9}})});
    }));
  }
  EXPECT_FALSE(is_binary([](Builder& g, Var p, Var label) {
    return g.apply("square_error", {p, label});
  }));
}

}  // namespace
}  // namespace argosy

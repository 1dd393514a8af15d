#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "argosy/base/test_support.h"
#include "argosy/graph/builder.h"

namespace argosy {
namespace {

std::string parse_failure(const std::string& text) {
  try {
    static_cast<void>(Program::parse(text, "net.txt"));
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

Program small_network() {
  Builder g;
  const Var x = g.input("x", {{-1, 13}}), y = g.input("y", {{-1, 1}});
  const Var w = g.param("fc.w", {13, 1}, "uniform(-0.1, 0.1)"), b = g.param("fc.b", {1}, "zeros");
  const Var predict = g.apply("linear", {x, w, b}, {{"activation", "tanh"}});
  g.name(predict, "predict");
  const Var loss = g.apply("mean", {g.apply("square_error", {predict, y})});
  g.output(loss);
  g.backward(loss);
  return g.program();
}

TEST(ProgramText, IsGolden) { expect_golden("small_network.txt", small_network().text()); }
TEST(ProgramText, DrawsGolden) { expect_golden("small_network.dot", small_network().dot()); }

TEST(ProgramText, ParsesWhatItPrints) {
  const Program program = small_network();
  const Program parsed = Program::parse(program.text());
  EXPECT_EQ(parsed.text(), program.text());
  EXPECT_EQ(parsed.grads, program.grads);
  EXPECT_EQ(parsed.nodes.back().phase, Phase::backward);
}

TEST(ProgramText, KeepsAttributesOfEveryKind) {
  Builder g;
  const Var x = g.input("x", {{2, 3}});
  g.apply("relu", {x},
          {{"i", int64_t{-3}},
           {"r", 0.1},
           {"whole", 2.0},
           {"small", 1e-30},
           {"t", "a \"b\" \\c"},
           {"list", std::vector<int64_t>{1, -1}},
           {"none", std::vector<int64_t>{}}});
  const Program parsed = Program::parse(g.program().text());
  EXPECT_EQ(parsed.nodes[0].attrs, g.program().nodes[0].attrs) << g.program().text();
}

TEST(ProgramText, PruningKeepsOnlyWhatIsNeeded) {
  const Program program = small_network();
  expect_golden("small_network_pruned.txt", program.pruned({program.find("predict")}).text());
}

TEST(ProgramText, RefusesWithTheLine) {
  const std::string head = "argosy program 1\ninput %0 x f32[-1,4]\n";
  EXPECT_EQ(parse_failure(""), "net.txt: empty, expected 'argosy program 1'");
  EXPECT_EQ(parse_failure("hello"), "net.txt:1: expected 'argosy program 1'");
  EXPECT_EQ(parse_failure(head + "%1 f32[-1,4] = relo(%0)"),
            "net.txt:3: unknown op 'relo', did you mean relu?");
  EXPECT_EQ(parse_failure(head + "%1 f32[-1,4] = relu(%7)"),
            "net.txt:3: %7 is used before it is defined");
  EXPECT_EQ(parse_failure(head + "%1 f32[-1,5] = relu(%0)"),
            "net.txt:3: relu gives f32[-1,4], the text says f32[-1,5]");
  EXPECT_EQ(parse_failure(head + "%2 f32[-1,4] = relu(%0)"),
            "net.txt:3: variables are numbered in order, expected %1 but the line ends");
  EXPECT_EQ(parse_failure(head + "%1 f33[-1,4] = relu(%0)"),
            "net.txt:3: unknown type 'f33', expected one of f32 f64 i32 i64 u8 b8");
  EXPECT_EQ(parse_failure(head + "%1 f32[-1,4] = relu(%0) {a=\"x}"),
            "net.txt:3: the closing quote is missing, got 'x}'");
  EXPECT_EQ(parse_failure(head + "%1 f32[-1,4] = relu(%0) extra"),
            "net.txt:3: expected the end of the line, got 'extra'");
  EXPECT_EQ(parse_failure(head + "%1 f32[-1,4] = relu(%0, %0)"),
            "net.txt:3: relu(f32[-1,4], f32[-1,4]): takes 1 inputs, got 2");
}

}  // namespace
}  // namespace argosy

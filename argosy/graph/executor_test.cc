#include "argosy/graph/executor.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

TEST(Executor, RunsARecordedProgram) {
  Builder g;
  Var x = g.input("x", {{-1, 2}});
  Var w = g.param("w", {2, 1}, "zeros");
  Var y = g.apply("linear", {x, w});
  g.output(y);
  Executor executor(g.program());
  executor.run({{"x", Tensor::of<float>({1, 2}, {2, 3})}, {"w", Tensor::of<float>({2, 1}, {10, 1})}});
  EXPECT_EQ(executor.value(y.id).as<float>()[0], 23.0F);
}

}  // namespace
}  // namespace argosy

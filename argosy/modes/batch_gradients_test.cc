#include "argosy/modes/batch_gradients.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy {
namespace {

/// A table, then two parameters, in the order of the program.
Plan small_plan(std::string clip = "") {
  Plan plan;
  plan.parameters = {{.name = "w", .elements = 2}, {.name = "b", .elements = 2}};
  plan.tables = {{.name = "ids", .dim = 1}};
  plan.states = {{.name = "mean", .type = {{1}}, .kind = VarKind::state}};
  plan.edges = {{{0}, {4}, VarKind::rows, 0},
                {{1}, {5}, VarKind::param, 0},
                {{2}, {6}, VarKind::param, 1},
                {{3}, {7}, VarKind::state, 0}};
  plan.clip = std::move(clip);
  return plan;
}

std::vector<float> floats(std::span<const float> values) { return {values.begin(), values.end()}; }

/// A batch with these as gradients of the table and of both parameters.
Batch delivered(const Plan& plan, const Tensor& ids, const Tensor& w, const Tensor& b) {
  Batch batch;
  batch.size = 1;
  batch.next_states.resize(1);
  clear_gradients(plan, batch);
  put_value(batch, plan.edges[0], ids);
  put_value(batch, plan.edges[1], w);
  put_value(batch, plan.edges[2], b);
  return batch;
}

TEST(BatchGradients, GoToTheirParameterTableOrState) {
  const Plan plan = small_plan();
  const Tensor ids = Tensor::of<float>({1}, {1}), w = Tensor::of<float>({2}, {2, 3}),
               b = Tensor::of<float>({2}, {4, 5}), mean = Tensor::of<float>({1}, {6});
  Batch batch = delivered(plan, ids, w, b);
  put_value(batch, plan.edges[3], mean);
  EXPECT_EQ(floats(batch.row_grads[0]), (std::vector<float>{1}));
  EXPECT_EQ(floats(batch.grads[0]), (std::vector<float>{2, 3}));
  EXPECT_EQ(floats(batch.grads[1]), (std::vector<float>{4, 5}));
  EXPECT_EQ(floats(std::as_const(batch.next_states[0]).as<float>()), (std::vector<float>{6}));
}

TEST(BatchGradients, OneThatIsMissingIsNamed) {
  const Plan plan = small_plan();
  const Tensor one({1}), two({2});
  const auto message = [&](Batch& batch) -> std::string {
    try {
      check_gradients(plan, batch);
    } catch (const Error& e) {
      return e.what();
    }
    return "all there";
  };
  Batch batch = delivered(plan, one, two, two);
  EXPECT_EQ(message(batch), "all there");
  batch.grads[1] = {};
  EXPECT_EQ(message(batch), "no gradient was delivered for 'b'");
  batch = delivered(plan, one, two, two);
  batch.row_grads[0] = {};
  EXPECT_EQ(message(batch), "no gradient was delivered for 'ids'");
  batch.size = 0;
  EXPECT_EQ(message(batch), "all there");
}

/// 2^54 + 2 + 2 is 2^54 in doubles, and within the limit; 2 + 2 + 2^54 is more.
TEST(BatchGradients, AGlobalNormIsAddedUpInTheOrderOfTheProgram) {
  const Plan plan = small_plan("global_norm(134217728)");
  const Tensor ids = Tensor::of<float>({1}, {134217728}), ones = Tensor::of<float>({2}, {1, 1});
  Batch batch = delivered(plan, ids, ones, ones);
  const float* const before = batch.row_grads[0].data();
  BatchClip clip(plan);
  clip.apply(batch);
  EXPECT_EQ(batch.row_grads[0].data(), before) << "it was clipped";
}

TEST(BatchGradients, AllOfThemAreClippedByTheirNormTogether) {
  const Plan plan = small_plan("global_norm(2.5)");
  const Tensor ids = Tensor::of<float>({1}, {3}), w = Tensor::of<float>({2}, {0, 4}), b({2});
  Batch batch = delivered(plan, ids, w, b);
  BatchClip clip(plan);
  clip.apply(batch);
  EXPECT_EQ(floats(batch.row_grads[0]), (std::vector<float>{1.5F}));
  EXPECT_EQ(floats(batch.grads[0]), (std::vector<float>{0, 2}));
  EXPECT_EQ(floats(batch.grads[1]), (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace argosy

#include "argosy/fleet/rank_gradients.h"

#include <gtest/gtest.h>

#include "argosy/comm/test_groups.h"

namespace argosy {
namespace {

using dynamic::Value;
using dynamic::ValuePtr;

ValuePtr parameter(const Shape& shape, float first) {
  const auto made = std::make_shared<Value>(Tensor(shape), true);
  std::ranges::fill(made->data.as<float>(), first);
  return made;
}

void set_grad(const ValuePtr& value, float grad) {
  value->grad = Tensor(value->data.shape());
  std::ranges::fill(value->grad->as<float>(), grad);
}

std::vector<float> numbers(const Tensor& tensor) {
  const auto values = std::as_const(tensor).as<float>();
  return {values.begin(), values.end()};
}

/// f(group, rank) on two ranks.
void on_ranks(int ranks, const std::function<void(std::shared_ptr<Group>, int)>& f) {
  const auto env = real_env();
  auto groups = inproc_groups(*env, ranks, std::chrono::seconds(60));
  on_threads(ranks, [&](int rank) {
    f(std::shared_ptr<Group>(std::move(groups[static_cast<size_t>(rank)])), rank);
  });
}

TEST(RankGradients, ParametersBeginAsThoseOfTheFirstRank) {
  on_ranks(2, [](const std::shared_ptr<Group>& group, int rank) {
    const auto w = parameter({3}, static_cast<float>(5 + rank));
    const RankGradients made(group, {{"w", w}}, {});
    EXPECT_EQ(numbers(w->data), (std::vector<float>{5, 5, 5}));
    EXPECT_FALSE(made.reached());
  });
}

TEST(RankGradients, AreTheMeanOrTheSumOfAllRanks) {
  for (const Reduce scale : {Reduce::avg, Reduce::sum}) {
    for (const bool deterministic : {false, true}) {
      on_ranks(4, [&](const std::shared_ptr<Group>& group, int rank) {
        const auto a = parameter({2}, 0), b = parameter({2, 2}, 0);
        RankGradients made(group, {{"a", a}, {"b", b}},
                           {.deterministic = deterministic, .scale = scale});
        set_grad(a, static_cast<float>(rank));
        set_grad(b, static_cast<float>(10 * rank));
        made.reduce();
        const float sum = scale == Reduce::avg ? 1.5F : 6.0F;
        EXPECT_EQ(numbers(*a->grad), std::vector<float>(2, sum));
        EXPECT_EQ(numbers(*b->grad), std::vector<float>(4, 10 * sum));
      });
    }
  }
}

TEST(RankGradients, OfRowsAreMergedInTheOrderOfRanks) {
  on_ranks(2, [](const std::shared_ptr<Group>& group, int rank) {
    const auto table = parameter({100, 2}, 1);
    RankGradients made(group, {{"table", table}}, {});
    if (rank == 0)
      table->row_grad = {.rows = Tensor::of<int64_t>({2}, {7, 3}),
                         .values = Tensor::of<float>({2, 2}, {2, 4, 6, 8})};
    else
      table->row_grad = {.rows = Tensor::of<int64_t>({3}, {3, 50, 99}),
                         .values = Tensor::of<float>({3, 2}, {2, 2, 4, 4, 8, 8})};
    made.reduce();
    const auto rows = std::as_const(table->row_grad->rows).as<int64_t>();
    EXPECT_EQ(std::vector<int64_t>(rows.begin(), rows.end()), (std::vector<int64_t>{7, 3, 50, 99}));
    EXPECT_EQ(numbers(table->row_grad->values), (std::vector<float>{1, 2, 4, 5, 2, 2, 4, 4}));
  });
}

TEST(RankGradients, RowsBecomeWholeWhereARankHasAWholeGradient) {
  on_ranks(2, [](const std::shared_ptr<Group>& group, int rank) {
    const auto table = parameter({2, 1}, 1);
    RankGradients made(group, {{"table", table}}, {});
    if (rank == 0)
      set_grad(table, 4);
    else
      table->row_grad = {.rows = Tensor::of<int64_t>({1}, {1}),
                         .values = Tensor::of<float>({1, 1}, {2})};
    made.reduce();
    EXPECT_FALSE(table->row_grad.has_value());
    EXPECT_EQ(numbers(*table->grad), (std::vector<float>{2, 3}));
  });
}

TEST(RankGradients, AMissingGradientIsAnErrorOnEveryRank) {
  on_ranks(2, [](const std::shared_ptr<Group>& group, int rank) {
    const auto used = parameter({2}, 0), unused = parameter({2}, 0);
    RankGradients made(group, {{"used", used}, {"unused", unused}}, {});
    set_grad(used, 1);
    if (rank == 0) set_grad(unused, 1);
    try {
      made.reduce();
      ADD_FAILURE() << "rank " << rank;
    } catch (const ConfigError& e) {
      const std::string where = rank == 0 ? "on another rank" : "here";
      EXPECT_EQ(std::string(e.what()),
                "unused got no gradient " + where +
                    ", so that there is no mean over 2 ranks; find_unused_parameters=True takes "
                    "zeros for it");
    }
  });
}

TEST(RankGradients, UnusedParametersCountAsZerosAndThoseOfNobodyAreLeft) {
  on_ranks(2, [](const std::shared_ptr<Group>& group, int rank) {
    const auto here = parameter({2}, 0), nowhere = parameter({2}, 0), rows = parameter({9, 1}, 0);
    RankGradients made(group, {{"here", here}, {"nowhere", nowhere}, {"rows", rows}},
                       {.find_unused = true});
    if (rank == 0) set_grad(here, 3);
    if (rank == 1)
      rows->row_grad = {.rows = Tensor::of<int64_t>({1}, {4}),
                        .values = Tensor::of<float>({1, 1}, {8})};
    made.reduce();
    EXPECT_EQ(numbers(*here->grad), (std::vector<float>{1.5F, 1.5F}));
    EXPECT_FALSE(nowhere->grad.has_value());
    EXPECT_EQ(numbers(rows->row_grad->values), (std::vector<float>{4}));
  });
}

TEST(RankGradients, OtherParametersAreRefusedWithBothSidesShown) {
  on_ranks(2, [](const std::shared_ptr<Group>& group, int rank) {
    const auto w = parameter({2 + rank}, 0);
    try {
      const RankGradients made(group, {{"w", w}}, {});
      ADD_FAILURE();
    } catch (const ConfigError& e) {
      EXPECT_NE(std::string(e.what()).find("parameter w [2]"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("parameter w [3]"), std::string::npos) << e.what();
    }
  });
}

TEST(RankGradients, KnowWhetherBackwardHasReachedThem) {
  on_ranks(1, [](const std::shared_ptr<Group>& group, int) {
    const auto w = parameter({2}, 3), other = parameter({2}, 3);
    RankGradients made(group, {{"w", w}}, {});
    const auto square = [](const ValuePtr& value) {
      const std::vector<ValuePtr> in = {value, value};
      return dynamic::apply(find_op("mul"), in)[0];
    };
    dynamic::backward(square(other));
    EXPECT_FALSE(made.reached());
    dynamic::backward(square(w));
    EXPECT_TRUE(made.reached());
    made.reduce();
    EXPECT_FALSE(made.reached());
    EXPECT_EQ(numbers(*w->grad), (std::vector<float>{6, 6}));
  });
}

}  // namespace
}  // namespace argosy

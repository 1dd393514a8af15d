#include "argosy/modes/ranks/rank_gradients.h"

#include <gtest/gtest.h>

#include "argosy/comm/test_groups.h"

namespace argosy {
namespace {

using comm::Group;
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
  auto groups = comm::inproc_groups(*env, ranks, std::chrono::seconds(60));
  comm::on_threads(ranks, [&](int rank) {
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
  for (const comm::Reduce scale : {comm::Reduce::avg, comm::Reduce::sum}) {
    for (const bool deterministic : {false, true}) {
      on_ranks(4, [&](const std::shared_ptr<Group>& group, int rank) {
        const auto a = parameter({2}, 0), b = parameter({2, 2}, 0);
        RankGradients made(group, {{"a", a}, {"b", b}},
                           {.deterministic = deterministic, .scale = scale});
        set_grad(a, static_cast<float>(rank));
        set_grad(b, static_cast<float>(10 * rank));
        made.reduce();
        const float sum = scale == comm::Reduce::avg ? 1.5F : 6.0F;
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

ValuePtr product(const ValuePtr& a, const ValuePtr& b) {
  const std::vector<ValuePtr> in = {a, b};
  return dynamic::apply(find_op("mul"), in)[0];
}

/// Gradients of all steps of a model with four parameters and a table, on one of three ranks that
/// do not use the same ones.
std::vector<std::vector<float>> steps_of_ranks(const std::shared_ptr<Group>& group, int rank,
                                               const RankGradientOptions& options) {
  const auto a = parameter({5}, 1), b = parameter({5}, 2), c = parameter({1}, 3),
             d = parameter({5}, 4), table = parameter({8, 5}, 1);
  RankGradients made(group, {{"a", a}, {"b", b}, {"c", c}, {"d", d}, {"table", table}}, options);
  std::vector<std::vector<float>> all;
  for (int step = 0; step < 4; ++step) {
    const auto x = std::make_shared<Value>(Tensor({5}));
    for (int i = 0; i < 5; ++i)
      x->data.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i + rank + step) / 7;
    const std::vector<ValuePtr> lookup = {
        table, std::make_shared<Value>(Tensor::of<int64_t>({1}, {rank + step}))};
    const ValuePtr row = dynamic::apply(find_op("embedding"), lookup, {{"sparse", int64_t{1}}})[0];
    ValuePtr y = product(product(product(x, a), b), c);
    if (step == 2 || rank != 1) y = product(y, b);
    if (step > 0 && rank == 2) y = product(y, d);  // never reached elsewhere, nor at first
    made.backward(product(y, row), {}, dynamic::Graph::freed);
    made.reduce();
    for (const ValuePtr& value : {a, b, c, d}) {
      all.push_back(value->grad ? numbers(*value->grad) : std::vector<float>());
      value->grad.reset();
    }
    all.push_back(numbers(table->row_grad->dense({8, 5})));
    table->row_grad.reset();
  }
  return all;
}

TEST(RankGradients, SentWhileBackwardRunsAreTheSame) {
  std::vector<std::vector<float>> expected;
  for (const Overlap overlap : {Overlap::never, Overlap::always}) {
    for (const size_t bytes : {size_t{1}, size_t{24}, size_t{1000}}) {
      on_ranks(3, [&](const std::shared_ptr<Group>& group, int rank) {
        const auto found = steps_of_ranks(group, rank,
                                          {.find_unused = true,
                                           .deterministic = true,
                                           .overlap = overlap,
                                           .bucket_bytes = bytes,
                                           .last_bucket_bytes = bytes});
        if (rank == 0 && expected.empty()) expected = found;
        group->barrier();
        EXPECT_EQ(found, expected) << "rank " << rank << ", buckets of " << bytes;
      });
    }
  }
  EXPECT_TRUE(expected[3].empty()) << "nobody had reached d";
  EXPECT_FALSE(expected[8].empty());
}

TEST(RankGradients, AreNotMixedWithThoseOfABackwardThatFailed) {
  on_ranks(2, [](const std::shared_ptr<Group>& group, int) {
    const auto a = parameter({2}, 1), b = parameter({2}, 2), c = parameter({2}, 3);
    RankGradients made(group, {{"a", a}, {"b", b}, {"c", c}},
                       {.overlap = Overlap::always, .bucket_bytes = 1, .last_bucket_bytes = 1});
    const auto loss = [&] { return product(product(product(a, a), b), c); };
    made.backward(loss(), {}, dynamic::Graph::freed);
    made.reduce();
    const ValuePtr changed = loss();
    ++a->version;
    EXPECT_THROW(made.backward(changed, {}, dynamic::Graph::freed), ConfigError) << "a was changed";
    try {
      made.backward(loss(), {}, dynamic::Graph::freed);
      ADD_FAILURE() << "c was sent";
    } catch (const ConfigError& e) {
      EXPECT_NE(std::string(e.what()).find("an earlier one failed"), std::string::npos) << e.what();
    }
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
    dynamic::backward(product(other, other));
    EXPECT_FALSE(made.reached());
    dynamic::backward(product(w, w));
    EXPECT_TRUE(made.reached());
    made.reduce();
    EXPECT_FALSE(made.reached());
    EXPECT_EQ(numbers(*w->grad), (std::vector<float>{6, 6}));
  });
}

}  // namespace
}  // namespace argosy

// Values and messages of the ops that move or look up elements; what all ops have in common is in
// tests/conformance.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "argosy/graph/builder.h"
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

using Values = std::vector<float>;

/// An eager builder over these params and inputs, by name.
struct Eager {
  Builder g;

  explicit Eager(Feeds feeds)
      : g([feeds = std::move(feeds)](const VarDesc& desc) { return feeds.at(desc.name); }) {}
  Var param(const std::string& name, const Shape& shape) { return g.param(name, shape, "zeros"); }
  Var indices(const std::string& name) { return g.input(name, {{-1}, DType::i64}); }
};

Values values(const Tensor& x) {
  const auto span = x.as<float>();
  return {span.begin(), span.end()};
}

Tensor floats(const Shape& shape, std::initializer_list<float> list) {
  return Tensor::of<float>(shape, list);
}

/// Runs one op on values.
std::vector<Tensor> run(const std::string& op, const std::vector<Tensor>& in, Attrs attrs = {}) {
  Builder g([&](const VarDesc& desc) { return in.at(std::stoul(desc.name)); });
  std::vector<Var> vars;
  for (size_t i = 0; i < in.size(); ++i)
    vars.push_back(g.input(std::to_string(i), {in[i].shape(), in[i].dtype()}));
  std::vector<Tensor> out;
  for (Var var : g.apply_all(op, vars, std::move(attrs))) out.push_back(var.value());
  return out;
}

/// The op's error for these values, without the line and op that the builder adds.
std::string data_error(const std::string& op, const std::vector<Tensor>& in, Attrs attrs = {}) {
  try {
    run(op, in, std::move(attrs));
  } catch (const DataError& e) {
    const std::string text = e.what();
    EXPECT_TRUE(text.starts_with("argosy/ops/index_ops_test.cc:")) << text;
    return text.substr(text.find("): ") + 3);
  }
  return "accepted";
}

TEST(Transpose, TurnsRowsIntoColumns) {
  EXPECT_EQ(values(run("transpose", {floats({2, 3}, {1, 2, 3, 4, 5, 6})})[0]),
            (Values{1, 4, 2, 5, 3, 6}));
}

TEST(Slice, CountsFromTheEndAndClampsAsNumPy) {
  using List = std::vector<int64_t>;
  const Tensor x = floats({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(
      values(run("slice", {x}, {{"axes", List{1}}, {"starts", List{-3}}, {"ends", List{100}}})[0]),
      (Values{1, 2, 3, 5, 6, 7}));
  EXPECT_EQ(values(run("slice", {x},
                       {{"axes", List{0, 1}}, {"starts", List{1, -9}}, {"ends", List{9, -2}}})[0]),
            (Values{4, 5}));
}

TEST(Split, APartNobodyUsesHasAZeroGradient) {
  Eager eager({{"x", floats({1, 3}, {1, 2, 3})}});
  const Var x = eager.param("x", {1, 3});
  const std::vector<Var> parts =
      eager.g.apply_all("split", std::array{x}, {{"axis", 1}, {"num", 3}});
  const auto& grads = eager.g.backward(eager.g.apply("sum", {parts[1]}));
  EXPECT_EQ(values(eager.g.value(grads.at(0).grad)), (Values{0, 1, 0}));
}

TEST(Tile, RepeatsTheWholeAxis) {
  EXPECT_EQ(
      values(run("tile", {floats({2}, {1, 2})}, {{"repeats", std::vector<int64_t>{2, 2}}})[0]),
      (Values{1, 2, 1, 2, 1, 2, 1, 2}));
}

TEST(OneHot, ReplacesALastAxisOfOneOrAppends) {
  const Tensor replaced = run("one_hot", {integers({2, 1}, {1, 0})}, {{"depth", 3}})[0];
  EXPECT_EQ(replaced.shape(), (Shape{2, 3}));
  EXPECT_EQ(values(replaced), (Values{0, 1, 0, 1, 0, 0}));
  const Tensor appended =
      run("one_hot", {integers({2, 1}, {1, 0})}, {{"depth", 3}, {"append", 1}})[0];
  EXPECT_EQ(appended.shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(data_error("one_hot", {integers({2, 1}, {1, 3})}, {{"depth", 3}}),
            "one_hot: index 3 at position 1, expected 0 to 2");
}

TEST(Argmax, TiesGiveTheLowestIndex) {
  const Tensor x = floats({2, 3}, {1, 7, 7, 5, 5, 0});
  const Tensor along_rows = run("argmax", {x})[0];
  EXPECT_TRUE(same_bits(along_rows, integers({2}, {1, 0})));
  const Tensor along_columns = run("argmax", {x}, {{"axis", 0}, {"keepdim", 1}})[0];
  EXPECT_TRUE(same_bits(along_columns, integers({1, 3}, {1, 0, 0})));
}

TEST(Gather, NamesTheIndexThatIsNotThere) {
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(values(run("gather", {x, integers({3}, {1, 1, 0})}, {{"axis", 1}})[0]),
            (Values{2, 2, 1, 4, 4, 3}));
  EXPECT_EQ(data_error("gather", {x, integers({3}, {1, 2, 0})}),
            "gather: index 2 at position 1, expected 0 to 1");
  EXPECT_EQ(data_error("gather", {x, integers({1}, {-1})}),
            "gather: index -1 at position 0, expected 0 to 1");
}

TEST(ScatterAdd, AddsEveryUpdateOfOneRow) {
  const Tensor out = run("scatter_add", {floats({2, 2}, {1, 2, 3, 4}), integers({3}, {1, 0, 1}),
                                         floats({3, 2}, {10, 20, 30, 40, 50, 60})})[0];
  EXPECT_EQ(values(out), (Values{31, 42, 63, 84}));
  EXPECT_EQ(data_error("scatter_add", {floats({2}, {1, 2}), integers({1}, {5}), floats({1}, {1})}),
            "scatter_add: index 5 at position 0, expected 0 to 1");
}

TEST(Embedding, PaddingGivesZerosAndNoGradient) {
  Eager eager({{"rows", floats({2, 2}, {1, 2, 3, 4})}, {"index", integers({4}, {1, 0, 1, -1})}});
  const Var out = eager.g.apply("embedding", {eager.param("rows", {2, 2}), eager.indices("index")},
                                {{"padding_idx", -1}});
  EXPECT_EQ(values(out.value()), (Values{3, 4, 1, 2, 3, 4, 0, 0}));
  const auto& grads = eager.g.backward(eager.g.apply("sum", {out}));
  EXPECT_EQ(values(eager.g.value(grads.at(0).grad)), (Values{1, 1, 2, 2}));
}

TEST(Embedding, NamesTheIndexThatIsNotThere) {
  EXPECT_EQ(data_error("embedding", {floats({2, 1}, {1, 2}), integers({2}, {0, 9})}),
            "embedding: index 9 at position 1, expected 0 to 1");
}

TEST(Embedding, UsualAndUnusualRowSizesAgree) {
  for (const int64_t dim : {1, 7, 8, 16, 24, 32, 64, 65}) {
    const RandomStream random(static_cast<uint64_t>(dim));
    Tensor rows({5, dim});
    for (size_t i = 0; i < rows.as<float>().size(); ++i)
      rows.as<float>()[i] = static_cast<float>(random.uniform(i));
    const Tensor index = integers({4}, {4, 0, 3, 4});
    EXPECT_TRUE(same_bits(run("embedding", {rows, index})[0], run("gather", {rows, index})[0]))
        << "dim " << dim;
    const Tensor dout = run("gather", {rows, integers({4}, {1, 2, 3, 0})})[0];
    EXPECT_TRUE(same_bits(run("embedding_grad", {rows, index, dout})[0],
                          run("gather_grad", {rows, index, dout})[0]))
        << "dim " << dim;
  }
}

TEST(GatherPool, PoolsByEachRule) {
  const Tensor rows = floats({3, 2}, {1, -2, 3, -4, 5, -6});
  const Tensor index = integers({4}, {0, 2, 1, 2}), offsets = integers({4}, {0, 2, 2, 4});
  const auto pooled = [&](const char* pool) {
    return values(run("gather_pool", {rows, index, offsets}, {{"pool", pool}})[0]);
  };
  EXPECT_EQ(pooled("sum"), (Values{6, -8, 0, 0, 8, -10}));
  EXPECT_EQ(pooled("mean"), (Values{3, -4, 0, 0, 4, -5}));
  EXPECT_EQ(pooled("max"), (Values{5, -2, 0, 0, 5, -4}));
  const float root = std::sqrt(2.0F);
  EXPECT_EQ(pooled("sqrt"), (Values{6 / root, -8 / root, 0, 0, 8 / root, -10 / root}));
}

TEST(GatherPool, PaddingIsNotCounted) {
  const Tensor rows = floats({3, 1}, {1, 3, 5});
  const Tensor index = integers({4}, {0, -1, 2, -1}), offsets = integers({3}, {0, 3, 4});
  EXPECT_EQ(values(run("gather_pool", {rows, index, offsets},
                       {{"pool", "mean"}, {"padding_idx", -1}})[0]),
            (Values{3, 0}));
}

TEST(GatherPool, OfEqualRowsTheFirstGetsTheGradientOfMax) {
  Eager eager({{"rows", floats({3, 1}, {7, 7, 1})},
               {"index", integers({3}, {2, 1, 0})},
               {"offsets", integers({2}, {0, 3})}});
  const Var out =
      eager.g.apply("gather_pool",
                    {eager.param("rows", {3, 1}), eager.indices("index"), eager.indices("offsets")},
                    {{"pool", "max"}});
  const auto& grads = eager.g.backward(eager.g.apply("sum", {out}));
  EXPECT_EQ(values(eager.g.value(grads.at(0).grad)), (Values{0, 1, 0}));
}

TEST(GatherPool, SaysWhatIsWrongWithOffsetsAndIndices) {
  const Tensor rows = floats({2, 1}, {1, 2}), index = integers({2}, {0, 1});
  EXPECT_EQ(data_error("gather_pool", {rows, index, integers({2}, {1, 2})}),
            "gather_pool: offsets start at 1, expected 0");
  EXPECT_EQ(data_error("gather_pool", {rows, index, integers({4}, {0, 2, 1, 2})}),
            "gather_pool: offset 1 at position 2 is less than 2 before it");
  EXPECT_EQ(data_error("gather_pool", {rows, index, integers({2}, {0, 3})}),
            "gather_pool: offsets end at 3, expected 2, the number of indices");
  EXPECT_EQ(data_error("gather_pool", {rows, integers({1}, {2}), integers({2}, {0, 1})}),
            "gather_pool: index 2 at position 0, expected 0 to 1");
}

}  // namespace
}  // namespace argosy::ops

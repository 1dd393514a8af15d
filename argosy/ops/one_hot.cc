// one_hot(index) {depth=n, append=1}: f32 with a one where the index says and zeros elsewhere. A
// last axis of size 1 becomes the depth; with append=1 the depth is a further axis.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  expect_integer(c, 0);
  const int64_t depth = c.attrs.integer("depth");
  check<ConfigError>(depth >= 1, "depth must be 1 or more, got ", depth);
  Shape out = c.in[0].shape;
  if (c.attrs.integer("append") != 0) {
    out.push_back(depth);
  } else {
    check<ConfigError>(out.rank() >= 1 && dims_agree(out[-1], 1),
                       "the last axis must have size 1 unless append=1, got ", out);
    out[-1] = depth;
  }
  c.out = {{out, DType::f32}};
}

void run(const RunCtx& c) {
  auto y = c.out(0).as<float>();
  std::ranges::fill(y, 0.0F);
  const auto depth = static_cast<size_t>(c.attrs.integer("depth"));
  by_integer(c.in(0).dtype(), [&](auto kind) {
    const auto index = c.in(0).as<decltype(kind)>();
    for (size_t i = 0; i < index.size(); ++i) {
      check<DataError>(static_cast<uint64_t>(index[i]) < depth, "one_hot: index ", index[i],
                       " at position ", i, ", expected 0 to ", depth - 1);
      y[i * depth + static_cast<size_t>(index[i])] = 1.0F;
    }
  });
}

std::vector<OpExample> examples() {
  return {{.in = {integers({3, 1}, {2, 0, 1})},
           .attrs = {{"depth", 4}},
           .refused = {{{{3, 2}, DType::i64}}, {{{3, 1}, DType::f64}}}},
          {.in = {integers({3}, {2, 0, 3})}, .attrs = {{"depth", 4}, {"append", 1}}}};
}

}  // namespace

std::vector<OpDef> one_hot() {
  return {{.name = "one_hot", .infer = infer, .run = run, .examples = examples}};
}

}  // namespace argosy::ops

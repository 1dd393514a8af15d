// squeeze(x) {axes=[...]}: x without these axes, which have size 1.
#include <cstring>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  const Shape& in = c.in[0].shape;
  const std::vector<int64_t>& axes = c.attrs.integers("axes");
  check<ConfigError>(!axes.empty(), "needs axes=[...], got none");
  Shape out;
  size_t dropped = 0;
  for (int i = 0; i < in.rank(); ++i) {
    if (std::ranges::none_of(axes, [&](int64_t axis) { return in.axis(axis) == i; })) {
      out.push_back(in[i]);
      continue;
    }
    check<ConfigError>(dims_agree(in[i], 1), "axis ", i, " of ", in, " must have size 1");
    ++dropped;
  }
  check<ConfigError>(dropped == axes.size(), "axes ", Shape(axes), " name an axis of ", in,
                     " that is not there, or one twice");
  c.out = {{out, c.in[0].dtype}};
}

void run(const RunCtx& c) {
  if (c.out(0).numel() > 0) std::memcpy(c.out(0).data(), c.in(0).data(), c.out(0).bytes());
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("unsqueeze", {c.dout[0]}, {{"axes", c.attrs.integers("axes")}})};
}

std::vector<OpExample> examples() {
  using Axes = std::vector<int64_t>;
  return {{.in = {random_tensor({3, 1, 4})},
           .attrs = {{"axes", Axes{1}}},
           .refused = {{{{3, 4, 1}, DType::f64}}, {{{3}, DType::f64}}}},
          {.in = {random_tensor({3, 1, 4, 1})}, .attrs = {{"axes", Axes{-1, 1}}}},
          {.in = {integers({2, 1}, {1, 2})}, .attrs = {{"axes", Axes{-1}}}}};
}

}  // namespace

std::vector<OpDef> squeeze() {
  return {{.name = "squeeze",
           .trait = OpTrait::view,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

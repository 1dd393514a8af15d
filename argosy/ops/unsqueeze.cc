// unsqueeze(x) {axes=[...]}: x with axes of size 1 at these places of the result.
#include <cstring>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  const Shape& in = c.in[0].shape;
  const std::vector<int64_t>& axes = c.attrs.integers("axes");
  check<ConfigError>(!axes.empty(), "needs axes=[...], got none");
  const auto rank = static_cast<int64_t>(axes.size()) + in.rank();
  Shape out;
  int next = 0;
  for (int64_t i = 0; i < rank; ++i) {
    const auto named = std::ranges::count_if(
        axes, [&](int64_t axis) { return (axis < 0 ? axis + rank : axis) == i; });
    const bool fits_here = named == 1 || (named == 0 && next < in.rank());
    check<ConfigError>(fits_here, "axes must be different places of a result with ", rank,
                       " axes, got ", axes.size(), " for ", in);
    out.push_back(named == 1 ? 1 : in[next++]);
  }
  c.out = {{out, c.in[0].dtype}};
}

void run(const RunCtx& c) {
  if (c.out(0).numel() > 0) std::memcpy(c.out(0).data(), c.in(0).data(), c.out(0).bytes());
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("squeeze", {c.dout[0]}, {{"axes", c.attrs.integers("axes")}})};
}

std::vector<OpExample> examples() {
  using Axes = std::vector<int64_t>;
  return {{.in = {random_tensor({3, 4})},
           .attrs = {{"axes", Axes{2}}},
           .refused = {{{{3}, DType::f64}}, {{{1, 1, 1, 1, 1, 1, 1, 1}, DType::f64}}}},
          {.in = {random_tensor({3, 4})}, .attrs = {{"axes", Axes{-1, 1}}}},
          {.in = {integers({2}, {1, 2})}, .attrs = {{"axes", Axes{0}}}}};
}

}  // namespace

std::vector<OpDef> unsqueeze() {
  return {{.name = "unsqueeze",
           .trait = OpTrait::view,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

// split(x) {axis=0, sizes=[...]} or {axis=0, num=n}: x cut along an axis into parts of these
// sizes, or into n equal ones; one output per part.
#include <cstring>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

std::vector<int64_t> equal_sizes(int64_t whole, int64_t count) {
  check<ConfigError>(count >= 1, "needs sizes=[...] or num >= 1, got num=", count);
  check<ConfigError>(whole == Shape::kAny || whole % count == 0, "cannot cut ", whole, " into ",
                     count, " equal parts");
  return std::vector<int64_t>(static_cast<size_t>(count),
                              whole == Shape::kAny ? Shape::kAny : whole / count);
}

std::vector<int64_t> part_sizes(int64_t whole, const Attrs& attrs) {
  if (!attrs.has("sizes")) return equal_sizes(whole, attrs.integer("num"));
  const std::vector<int64_t>& sizes = attrs.integers("sizes");
  int64_t total = 0;
  for (int64_t size : sizes) {
    check<ConfigError>(size >= 0, "a size must be 0 or more, got ", size);
    total += size;
  }
  check<ConfigError>(!sizes.empty() && dims_agree(total, whole), "sizes make ", total,
                     " together, expected ", whole);
  return sizes;
}

void infer(const InferCtx& c) {
  VarType part = c.in[0];
  const int axis = part.shape.axis(c.attrs.integer("axis"));
  c.out.clear();
  for (int64_t size : part_sizes(c.in[0].shape[axis], c.attrs)) {
    part.shape[axis] = size;
    c.out.push_back(part);
  }
}

void run(const RunCtx& c) {
  const Tensor& x = c.in(0);
  if (x.numel() == 0) return;
  const int axis = x.shape().axis(c.attrs.integer("axis"));
  const AxisSpan whole(x.shape(), axis);
  const size_t cell = whole.inner * size_of(x.dtype()), row_bytes = whole.length * cell;
  const std::byte* from = x.data();
  for (Tensor* part : c.outputs) {
    const size_t bytes = static_cast<size_t>(part->shape()[axis]) * cell;
    if (bytes == 0) continue;
    for (size_t row = 0; row < whole.outer; ++row)
      std::memcpy(part->data() + row * bytes, from + row * row_bytes, bytes);
    from += bytes;
  }
}

std::vector<Var> grad(const GradCtx& c) {
  std::vector<Var> parts;
  for (size_t i = 0; i < c.out.size(); ++i)
    parts.push_back(c.dout[i] ? c.dout[i] : c.g.apply("zeros_like", {c.out[i]}));
  return c.g.apply_all("concat", parts, {{"axis", c.attrs.integer("axis")}});
}

std::vector<OpExample> examples() {
  using Sizes = std::vector<int64_t>;
  const Tensor x = random_tensor({3, 6});
  return {{.in = {x},
           .attrs = {{"axis", 1}, {"sizes", Sizes{1, 3, 2}}},
           .refused = {{{{3, 7}, DType::f64}}, {{{6}, DType::f64}}}},
          {.in = {x}, .attrs = {{"axis", -1}, {"num", 3}}, .refused = {{{{3, 7}, DType::f64}}}},
          {.in = {x}, .attrs = {{"num", 3}}},
          {.in = {random_tensor({2, 5, 2})}, .attrs = {{"axis", 1}, {"sizes", Sizes{2, 0, 3}}}},
          {.in = {integers({1, 4}, {1, 2, 3, 4})}, .attrs = {{"axis", 1}, {"num", 2}}}};
}

}  // namespace

std::vector<OpDef> split() {
  return {{.name = "split", .infer = infer, .run = run, .grad = grad, .examples = examples}};
}

}  // namespace argosy::ops

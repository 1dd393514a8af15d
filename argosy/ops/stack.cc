// stack(a, b, ...) {axis=0}: inputs of one shape side by side along a new axis.
#include <cstring>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

/// Index of the new axis in the result.
int new_axis(int rank_of_result, const Attrs& attrs) {
  const int64_t axis = attrs.integer("axis");
  check<ConfigError>(axis >= -rank_of_result && axis < rank_of_result, "axis ", axis,
                     " of a result with ", rank_of_result, " axes");
  return static_cast<int>(axis < 0 ? axis + rank_of_result : axis);
}

void infer(const InferCtx& c) {
  Shape out = c.in[0].shape;
  for (size_t i = 1; i < c.in.size(); ++i) {
    expect_same_type(c, 0, i);
    const Shape& next = c.in[i].shape;
    check<ConfigError>(fits(next, out), "inputs must have one shape, got ", out, " and ", next);
    for (int k = 0; k < out.rank(); ++k) out[k] = std::max(out[k], next[k]);
  }
  out.insert(new_axis(out.rank() + 1, c.attrs), static_cast<int64_t>(c.in.size()));
  c.out = {{out, c.in[0].dtype}};
}

void run(const RunCtx& c) {
  if (c.out(0).numel() == 0) return;
  const Shape& shape = c.out(0).shape();
  const AxisSpan span(shape, new_axis(shape.rank(), c.attrs));
  const size_t bytes = span.inner * size_of(c.out(0).dtype());
  std::byte* to = c.out(0).data();
  for (size_t row = 0; row < span.outer; ++row)
    for (const Tensor* x : c.inputs) {
      std::memcpy(to, x->data() + row * bytes, bytes);
      to += bytes;
    }
}

std::vector<Var> grad(const GradCtx& c) {
  using List = std::vector<int64_t>;
  const int64_t axis = new_axis(c.out[0].shape().rank(), c.attrs);
  const bool all = std::ranges::find(c.needs, false) == c.needs.end();
  std::vector<Var> result(c.in.size());
  if (all) {
    result = c.g.apply_all("split", c.dout.first(1),
                           {{"axis", axis}, {"num", static_cast<int64_t>(c.in.size())}});
  }
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (!c.needs[i]) continue;
    const auto start = static_cast<int64_t>(i);
    if (!all) {
      result[i] =
          c.g.apply("slice", {c.dout[0]},
                    {{"axes", List{axis}}, {"starts", List{start}}, {"ends", List{start + 1}}});
    }
    result[i] = c.g.apply("squeeze", {result[i]}, {{"axes", List{axis}}});
  }
  return result;
}

std::vector<OpExample> examples() {
  const Tensor a = random_tensor({3, 4}), b = random_tensor({3, 4}, 2);
  const std::vector<std::vector<VarType>> refused = {{{{3, 4}, DType::f64}, {{3, 5}, DType::f64}},
                                                     {{{3, 4}, DType::f64}, {{3, 4}, DType::f32}}};
  return {{.in = {a, b}, .batched = {0, 1}, .refused = refused},
          {.in = {a, b, a}, .attrs = {{"axis", 1}}, .batched = {0, 1, 2}},
          {.in = {a, b}, .attrs = {{"axis", -1}}, .batched = {0, 1}},
          {.in = {integers({2}, {1, 2}), integers({2}, {3, 4})},
           .attrs = {{"axis", 1}},
           .batched = {0, 1}}};
}

}  // namespace

std::vector<OpDef> stack() {
  return {{.name = "stack",
           .inputs = -1,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

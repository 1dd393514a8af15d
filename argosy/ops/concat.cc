// concat(a, b, ...) {axis=0}: the inputs one after another along an axis.
#include <cstring>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  Shape out = c.in[0].shape;
  const int axis = out.axis(c.attrs.integer("axis"));
  for (size_t i = 1; i < c.in.size(); ++i) {
    expect_same_type(c, 0, i);
    const Shape& next = c.in[i].shape;
    Shape expected = out;
    expected[axis] = Shape::kAny;
    check<ConfigError>(fits(next, expected), "input ", i, " must agree with ", c.in[0].shape,
                       " but on axis ", axis, ", got ", next);
    const int64_t here = out[axis], more = next[axis];
    for (int k = 0; k < out.rank(); ++k) out[k] = std::max(out[k], next[k]);
    out[axis] = here == Shape::kAny || more == Shape::kAny ? Shape::kAny : here + more;
  }
  c.out = {{out, c.in[0].dtype}};
}

/// Bytes of one input's part in a row of the result.
size_t part_bytes(const Tensor& x, int axis) {
  const AxisSpan span(x.shape(), axis);
  return span.length * span.inner * size_of(x.dtype());
}

void run(const RunCtx& c) {
  if (c.out(0).numel() == 0) return;
  const int axis = c.out(0).shape().axis(c.attrs.integer("axis"));
  const size_t rows = AxisSpan(c.out(0).shape(), axis).outer;
  const size_t row_bytes = part_bytes(c.out(0), axis);
  std::byte* to = c.out(0).data();
  for (const Tensor* x : c.inputs) {
    const size_t bytes = part_bytes(*x, axis);
    if (bytes == 0) continue;
    for (size_t row = 0; row < rows; ++row)
      std::memcpy(to + row * row_bytes, x->data() + row * bytes, bytes);
    to += bytes;
  }
}

void infer_part(const InferCtx& c) { c.out = {{c.in.back().shape, c.in[0].dtype}}; }

/// (dout, a, b, ..., x) -> dx, where a, b, ... precede x in the result. For sizes not known when
/// the gradient is recorded; else it is a slice.
void run_part(const RunCtx& c) {
  Tensor& dx = c.out(0);
  if (dx.numel() == 0) return;
  const int axis = dx.shape().axis(c.attrs.integer("axis"));
  const std::byte* from = c.in(0).data();
  for (size_t i = 1; i + 1 < c.inputs.size(); ++i) from += part_bytes(c.in(i), axis);
  const size_t rows = AxisSpan(dx.shape(), axis).outer;
  const size_t row_bytes = part_bytes(c.in(0), axis), bytes = part_bytes(dx, axis);
  for (size_t row = 0; row < rows; ++row)
    std::memcpy(dx.data() + row * bytes, from + row * row_bytes, bytes);
}

std::vector<Var> grad(const GradCtx& c) {
  const int64_t axis = c.out[0].shape().axis(c.attrs.integer("axis"));
  using List = std::vector<int64_t>;
  List sizes;
  for (const Var& x : c.in) sizes.push_back(x.shape()[static_cast<int>(axis)]);
  const bool known = std::ranges::find(sizes, Shape::kAny) == sizes.end();
  const bool all = std::ranges::find(c.needs, false) == c.needs.end();
  if (known && all)
    return c.g.apply_all("split", c.dout.first(1), {{"axis", axis}, {"sizes", sizes}});

  std::vector<Var> result(c.in.size());
  int64_t start = 0;
  for (size_t i = 0; i < c.in.size(); start += sizes[i++]) {
    if (!c.needs[i]) continue;
    if (known) {
      result[i] = c.g.apply(
          "slice", {c.dout[0]},
          {{"axes", List{axis}}, {"starts", List{start}}, {"ends", List{start + sizes[i]}}});
      continue;
    }
    std::vector<Var> in = {c.dout[0]};
    in.insert(in.end(), c.in.begin(), c.in.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    result[i] = c.g.apply_all("concat_part", in, {{"axis", axis}})[0];
  }
  return result;
}

std::vector<OpExample> examples() {
  const Tensor a = random_tensor({3, 4}), b = random_tensor({3, 2}, 2);
  const Tensor d = random_tensor({2, 4}, 3), cube = random_tensor({3, 2, 2}, 4);
  const std::vector<std::vector<VarType>> refused = {
      {{{3, 4}, DType::f64}, {{2, 4}, DType::f64}},
      {{{3, 4}, DType::f64}, {{3, 4}, DType::f32}},
      {{{3, 4}, DType::f64}, {{3, 4, 1}, DType::f64}}};
  return {{.in = {a, b, a}, .attrs = {{"axis", 1}}, .batched = {0, 1, 2}, .refused = refused},
          {.in = {a, d, a}, .batched = {0, 1, 2}},
          {.in = {cube, random_tensor({3, 3, 2}, 5)}, .attrs = {{"axis", -2}}, .batched = {0, 1}},
          {.in = {a}, .attrs = {{"axis", -1}}},
          {.in = {integers({2, 1}, {1, 2}), integers({2, 2}, {3, 4, 5, 6})},
           .attrs = {{"axis", 1}},
           .batched = {0, 1}}};
}

}  // namespace

std::vector<OpDef> concat() {
  return {{.name = "concat",
           .inputs = -1,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "concat_part", .inputs = -1, .infer = infer_part, .run = run_part}};
}

}  // namespace argosy::ops

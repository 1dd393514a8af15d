// slice(x) {axes=[...], starts=[...], ends=[...]}: x[start:end] on each of these axes. As in NumPy
// a negative place counts from the end, and one beyond the ends is moved to them.
#include <cstring>

#include "argosy/ops/op_support.h"
#include "argosy/ops/slice_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  VarType out = c.in[0];
  const Ranges ranges = ranges_of(out.shape, c.attrs);
  for (int i = 0; i < out.shape.rank(); ++i) out.shape[i] = ranges[static_cast<size_t>(i)].size;
  c.out = {out};
}

/// An axis with its steps in bytes, in x and in the slice.
struct Axis {
  size_t size, whole_step, slice_step;
};

/// f(whole, slice) at every place of the given axes.
template <class F>
void nest(std::span<const Axis> axes, size_t whole, size_t slice, F f) {
  if (axes.empty()) return f(whole, slice);
  for (size_t i = 0; i < axes[0].size; ++i)
    nest(axes.subspan(1), whole + i * axes[0].whole_step, slice + i * axes[0].slice_step, f);
}

/// f(offset in x, offset in the slice, bytes) for each piece that lies together in both.
template <class F>
void for_each_piece(const Shape& x, const Shape& slice, DType dtype, const Attrs& attrs, F f) {
  if (slice.numel() == 0) return;
  const Ranges ranges = ranges_of(x, attrs);
  int last = x.rank() - 1;  // the innermost axis that is cut
  while (last > 0 && slice[last] == x[last]) --last;
  size_t offset = 0;
  std::array<Axis, Shape::kMaxRank> axes{};
  const auto depth = static_cast<size_t>(std::max(last, 0));
  for (int i = 0; i < x.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    const size_t whole_step = AxisSpan(x, i).inner * size_of(dtype);
    offset += static_cast<size_t>(ranges[at].start) * whole_step;
    axes[at] = {static_cast<size_t>(slice[i]), whole_step,
                AxisSpan(slice, i).inner * size_of(dtype)};
  }
  const size_t bytes = x.rank() == 0 ? size_of(dtype) : axes[depth].size * axes[depth].slice_step;
  nest(std::span(axes).first(depth), offset, 0,
       [&](size_t whole_at, size_t slice_at) { f(whole_at, slice_at, bytes); });
}

void run(const RunCtx& c) {
  const std::byte* from = c.in(0).data();
  std::byte* to = c.out(0).data();
  for_each_piece(c.in(0).shape(), c.out(0).shape(), c.in(0).dtype(), c.attrs,
                 [=](size_t whole, size_t slice, size_t bytes) {
                   std::memcpy(to + slice, from + whole, bytes);
                 });
}

void infer_grad(const InferCtx& c) {
  infer(c);
  check<ConfigError>(fits(c.in[1].shape, c.out[0].shape), "expected a slice of shape ",
                     c.out[0].shape, ", got ", c.in[1].shape);
  c.out = {c.in[0]};
}

void run_grad(const RunCtx& c) {  // (x, dout) -> dx
  if (c.out(0).numel() == 0) return;
  std::memset(c.out(0).data(), 0, c.out(0).bytes());
  const std::byte* from = c.in(1).data();
  std::byte* to = c.out(0).data();
  for_each_piece(c.in(0).shape(), c.in(1).shape(), c.in(0).dtype(), c.attrs,
                 [=](size_t whole, size_t slice, size_t bytes) {
                   std::memcpy(to + whole, from + slice, bytes);
                 });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("slice_grad", {c.in[0], c.dout[0]}, c.attrs)};
}

std::vector<OpExample> examples() {
  using List = std::vector<int64_t>;
  const Tensor x = random_tensor({3, 4, 5});
  return {
      {.in = {x},
       .attrs = {{"axes", List{1}}, {"starts", List{1}}, {"ends", List{3}}},
       .refused = {{{{3}, DType::f64}}}},
      {.in = {x},
       .attrs = {{"axes", List{-1, 0}}, {"starts", List{-3, 1}}, {"ends", List{-1, 100}}}},
      {.in = {x}, .attrs = {{"axes", List{2, 1}}, {"starts", List{0, -99}}, {"ends", List{5, 2}}}},
      {.in = {x}, .attrs = {{"axes", List{1}}, {"starts", List{3}}, {"ends", List{1}}}},
      {.in = {integers({4}, {1, 2, 3, 4})},
       .attrs = {{"axes", List{0}}, {"starts", List{1}}, {"ends", List{-1}}}},
  };
}

}  // namespace

std::vector<OpDef> slice() {
  return {{.name = "slice", .infer = infer, .run = run, .grad = grad, .examples = examples},
          {.name = "slice_grad", .inputs = 2, .shape_of = 0, .infer = infer_grad, .run = run_grad}};
}

}  // namespace argosy::ops

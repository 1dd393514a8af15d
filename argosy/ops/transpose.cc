// transpose(x) {perm=[...]}: axis i of the result is axis perm[i] of x; without perm the axes are
// reversed.
#include <array>
#include <cstring>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

/// The axes of the input in the order of the result.
Shape permutation(const Shape& in, const Attrs& attrs) {
  Shape perm;
  if (!attrs.has("perm"))
    for (int i = in.rank(); i-- > 0;) perm.push_back(i);
  for (int64_t axis : attrs.integers("perm")) perm.push_back(in.axis(axis));
  std::array<bool, Shape::kMaxRank> taken{};
  bool whole = perm.rank() == in.rank();
  for (int64_t axis : perm) {
    bool& seen = taken[static_cast<size_t>(axis)];
    whole = whole && !seen;
    seen = true;
  }
  check<ConfigError>(whole, "perm must hold each of the ", in.rank(), " axes of ", in,
                     " once, got ", perm);
  return perm;
}

void infer(const InferCtx& c) {
  const Shape& in = c.in[0].shape;
  Shape out;
  for (int64_t axis : permutation(in, c.attrs)) out.push_back(in[static_cast<int>(axis)]);
  c.out = {{out, c.in[0].dtype}};
}

/// An axis of the result with its steps in bytes.
struct Axis {
  size_t size, in_step, out_step;
};

/// Up to kMaxRank axes, in place.
struct Axes {
  std::array<Axis, Shape::kMaxRank> axis{};
  size_t count = 0;

  bool empty() const { return count == 0; }
  Axis& back() { return axis[count - 1]; }
  void push_back(const Axis& one) { axis[count++] = one; }
  std::span<const Axis> all() const { return {axis.data(), count}; }
  /// Takes out axis i and gives it back.
  Axis take(size_t i) {
    const Axis taken = axis[i];
    std::copy(axis.begin() + static_cast<std::ptrdiff_t>(i) + 1,
              axis.begin() + static_cast<std::ptrdiff_t>(count),
              axis.begin() + static_cast<std::ptrdiff_t>(i));
    --count;
    return taken;
  }
};

/// The result's axes without those of size 1; axes that stay adjacent are merged.
Axes merged_axes(const Shape& in, const Shape& perm, size_t cell) {
  Axes axes;
  for (int64_t axis : perm) {
    const AxisSpan span(in, static_cast<int>(axis));
    if (span.length == 1) continue;
    const size_t step = span.inner * cell;
    if (!axes.empty() && axes.back().in_step == step * span.length) {
      axes.back() = {axes.back().size * span.length, step, 0};
    } else {
      axes.push_back({span.length, step, 0});
    }
  }
  for (size_t i = axes.count, step = cell; i-- > 0; step *= axes.axis[i].size)
    axes.axis[i].out_step = step;
  return axes;
}

/// f(from, to) at every place of the given axes.
template <class F>
void nest(std::span<const Axis> axes, const std::byte* from, std::byte* to, F f) {
  if (axes.empty()) return f(from, to);
  for (size_t i = 0; i < axes[0].size; ++i)
    nest(axes.subspan(1), from + i * axes[0].in_step, to + i * axes[0].out_step, f);
}

constexpr size_t kBlock = 16;

/// A full block, read and written whole lines at a time: lines a power of two apart push each
/// other out of the cache.
template <size_t kCell>
void transpose_block(const std::byte* from, size_t in_step, std::byte* to, size_t out_step) {
  constexpr size_t kLine = kBlock * kCell;
  std::array<std::byte, kBlock * kLine> in, out;
  for (size_t c = 0; c < kBlock; ++c) std::memcpy(&in[c * kLine], from + c * in_step, kLine);
  for (size_t r = 0; r < kBlock; ++r)
    for (size_t c = 0; c < kBlock; ++c)
      std::memcpy(&out[r * kLine + c * kCell], &in[c * kLine + r * kCell], kCell);
  for (size_t r = 0; r < kBlock; ++r) std::memcpy(to + r * out_step, &out[r * kLine], kLine);
}

/// Rows lie together in the input, columns in the result.
template <size_t kCell>
void transpose_plane(const Axis& row, const Axis& column, const std::byte* from, std::byte* to) {
  for (size_t r0 = 0; r0 < row.size; r0 += kBlock) {
    const size_t rows = std::min(kBlock, row.size - r0);
    for (size_t c0 = 0; c0 < column.size; c0 += kBlock) {
      const size_t columns = std::min(kBlock, column.size - c0);
      const std::byte* source = from + r0 * kCell + c0 * column.in_step;
      std::byte* result = to + r0 * row.out_step + c0 * kCell;
      if (rows == kBlock && columns == kBlock) {
        transpose_block<kCell>(source, column.in_step, result, row.out_step);
        continue;
      }
      for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < columns; ++c)
          std::memcpy(result + r * row.out_step + c * kCell,
                      source + r * kCell + c * column.in_step, kCell);
    }
  }
}

template <size_t kCell>
void run_cells(const RunCtx& c) {
  const Shape& in = c.in(0).shape();
  Axes axes = merged_axes(in, permutation(in, c.attrs), kCell);
  const std::byte* from = c.in(0).data();
  std::byte* to = c.out(0).data();
  if (axes.empty()) axes.push_back({1, kCell, kCell});
  const Axis last = axes.take(axes.count - 1);
  if (last.in_step == kCell) {
    nest(axes.all(), from, to,
         [bytes = last.size * kCell](const std::byte* row, std::byte* result) {
           std::memcpy(result, row, bytes);
         });
    return;
  }
  const auto inner = std::ranges::find(axes.all(), kCell, &Axis::in_step);
  const Axis row = axes.take(static_cast<size_t>(inner - axes.all().begin()));
  nest(axes.all(), from, to, [&](const std::byte* plane, std::byte* result) {
    transpose_plane<kCell>(row, last, plane, result);
  });
}

void run(const RunCtx& c) {
  if (c.out(0).numel() == 0) return;
  switch (size_of(c.in(0).dtype())) {
    case 1:
      return run_cells<1>(c);
    case 4:
      return run_cells<4>(c);
    default:
      return run_cells<8>(c);
  }
}

std::vector<Var> grad(const GradCtx& c) {
  const Shape perm = permutation(c.in[0].shape(), c.attrs);
  std::vector<int64_t> inverse(static_cast<size_t>(perm.rank()));
  for (int i = 0; i < perm.rank(); ++i) inverse[static_cast<size_t>(perm[i])] = i;
  return {c.g.apply("transpose", {c.dout[0]}, {{"perm", inverse}})};
}

std::vector<OpExample> examples() {
  using Axes = std::vector<int64_t>;
  const Tensor cube = random_tensor({3, 4, 5});
  return {{.in = {random_tensor({19, 37})}},
          {.in = {cube}, .attrs = {{"perm", Axes{0, 2, 1}}}, .refused = {{{{3, 4}, DType::f64}}}},
          {.in = {cube}, .attrs = {{"perm", Axes{-1, 0, 1}}}},
          {.in = {random_tensor({2, 3, 1, 4, 2})}, .attrs = {{"perm", Axes{0, 3, 2, 1, 4}}}},
          {.in = {cube}, .attrs = {{"perm", Axes{0, 1, 2}}}},
          {.in = {integers({2, 3}, {1, 2, 3, 4, 5, 6})}}};
}

}  // namespace

std::vector<OpDef> transpose() {
  return {
      {.name = "transpose", .infer = infer, .run = run, .grad = grad, .examples = examples},
  };
}

}  // namespace argosy::ops

// tile(x) {repeats=[...]}: x repeated along each axis. As in NumPy the shorter of x's shape and
// the repeats is filled up with ones in front.
#include <array>
#include <cstring>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

/// x's shape and the repeats, of one rank.
struct Tiling {
  Shape in, repeats;

  Tiling(const Shape& x, const Attrs& attrs) : in(x) {
    const std::vector<int64_t>& given = attrs.integers("repeats");
    check<ConfigError>(!given.empty(), "needs repeats=[...], got none");
    for (int64_t count : given) {
      check<ConfigError>(count >= 1, "repeats must be 1 or more, got ", count);
      repeats.push_back(count);
    }
    while (in.rank() < repeats.rank()) in.insert(0, 1);
    while (repeats.rank() < in.rank()) repeats.insert(0, 1);
  }

  Shape result() const {
    Shape out = in;
    for (int i = 0; i < in.rank(); ++i)
      if (in[i] != Shape::kAny) out[i] *= repeats[i];
    return out;
  }

  /// The axis from which on nothing is repeated.
  int whole_from() const {
    int axis = in.rank();
    while (axis > 0 && repeats[axis - 1] == 1) --axis;
    return axis;
  }
};

/// The recursion over axes with what it needs of the shapes.
struct Walk {
  std::array<size_t, Shape::kMaxRank> sizes{}, repeats{}, steps{};  // steps in elements of x
  size_t depth = 0, run = 1;  // axes to walk; elements that follow each other below them

  explicit Walk(const Tiling& tiling) : depth(static_cast<size_t>(tiling.whole_from())) {
    for (int i = 0; i < tiling.in.rank(); ++i) {
      const auto at = static_cast<size_t>(i);
      sizes[at] = static_cast<size_t>(tiling.in[i]);
      repeats[at] = static_cast<size_t>(tiling.repeats[i]);
      steps[at] = AxisSpan(tiling.in, i).inner;
      if (at >= depth) run *= sizes[at];
    }
  }
};

void infer(const InferCtx& c) {
  c.out = {{Tiling(c.in[0].shape, c.attrs).result(), c.in[0].dtype}};
}

/// Writes what is below one place of the axes before `axis`; returns where it ends.
std::byte* copy_block(const Walk& walk, size_t cell, size_t axis, const std::byte* x,
                      std::byte* to) {
  if (axis == walk.depth) {
    std::memcpy(to, x, walk.run * cell);
    return to + walk.run * cell;
  }
  std::byte* end = to;
  for (size_t i = 0; i < walk.sizes[axis]; ++i)
    end = copy_block(walk, cell, axis + 1, x + i * walk.steps[axis] * cell, end);
  const auto once = static_cast<size_t>(end - to);
  for (size_t i = 1; i < walk.repeats[axis]; ++i, end += once) std::memcpy(end, to, once);
  return end;
}

void run(const RunCtx& c) {
  if (c.out(0).numel() == 0) return;
  const Walk walk(Tiling(c.in(0).shape(), c.attrs));
  copy_block(walk, size_of(c.in(0).dtype()), 0, c.in(0).data(), c.out(0).data());
}

/// Adds a part of dout to its place in dx; returns where the part ends.
template <class T>
const T* add_block(const Walk& walk, size_t axis, const T* dout, T* dx) {
  if (axis == walk.depth) {
    vectorized([=, n = walk.run] {
      for (size_t i = 0; i < n; ++i) dx[i] += dout[i];
    });
    return dout + walk.run;
  }
  for (size_t repeat = 0; repeat < walk.repeats[axis]; ++repeat)
    for (size_t i = 0; i < walk.sizes[axis]; ++i)
      dout = add_block(walk, axis + 1, dout, dx + i * walk.steps[axis]);
  return dout;
}

void infer_grad(const InferCtx& c) {
  expect_float(c, 1);
  const Shape expected = Tiling(c.in[0].shape, c.attrs).result();
  check<ConfigError>(fits(c.in[1].shape, expected), "expected a gradient of shape ", expected,
                     ", got ", c.in[1].shape);
  c.out = {c.in[0]};
}

void run_grad(const RunCtx& c) {  // (x, dout) -> dx
  if (c.out(0).numel() == 0) return;
  const Walk walk(Tiling(c.in(0).shape(), c.attrs));
  by_float(c.out(0).dtype(), [&](auto zero) {
    auto dx = c.out(0).as<decltype(zero)>();
    std::ranges::fill(dx, zero);
    add_block(walk, 0, c.in(1).as<decltype(zero)>().data(), dx.data());
  });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("tile_grad", {c.in[0], c.dout[0]}, c.attrs)};
}

std::vector<OpExample> examples() {
  using Counts = std::vector<int64_t>;
  const Tensor x = random_tensor({3, 2, 2});
  return {{.in = {x}, .attrs = {{"repeats", Counts{1, 3, 1}}}},
          {.in = {x}, .attrs = {{"repeats", Counts{2, 1, 2}}}},
          {.in = {x}, .attrs = {{"repeats", Counts{3}}}},
          {.in = {random_tensor({3})}, .attrs = {{"repeats", Counts{2, 2}}}},
          {.in = {integers({2, 1}, {1, 2})}, .attrs = {{"repeats", Counts{1, 2}}}}};
}

}  // namespace

std::vector<OpDef> tile() {
  return {{.name = "tile", .infer = infer, .run = run, .grad = grad, .examples = examples},
          {.name = "tile_grad", .inputs = 2, .shape_of = 0, .infer = infer_grad, .run = run_grad}};
}

}  // namespace argosy::ops

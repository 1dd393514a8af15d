// take_along_axis(x, index) {axis=-1}: x[..., index[..., k, ...], ...]; the index has x's shape but
// for the size of the axis. An index is 0 or more, never from the end.
#include "argosy/ops/index_support.h"

namespace argosy::ops {
namespace {

int axis_of(const Shape& x, const Attrs& attrs) { return x.axis(attrs.integer("axis", -1)); }

void infer(const InferCtx& c) {
  const Shape &x = c.in[0].shape, &index = c.in[1].shape;
  expect_integer(c, 1);
  const int axis = axis_of(x, c.attrs);
  Shape expected = x;
  expected[axis] = Shape::kAny;
  check<ConfigError>(fits(index, expected), "the index must be ", expected, ", got ", index);
  c.out = {{index, c.in[0].dtype}};
}

/// f(place in the index, place in x) for each element of the index.
template <class F>
void for_each_place(const Shape& x, const Tensor& index_in, const Attrs& attrs, F f) {
  const int axis = axis_of(x, attrs);
  const AxisSpan from(x, axis), to(index_in.shape(), axis);
  by_integer(index_in.dtype(), [&](auto kind) {
    const auto index = index_in.as<decltype(kind)>();
    check_index("take_along_axis", index, from.length);
    for (size_t at = 0; at < index.size(); ++at) {
      const size_t outer = at / (to.length * to.inner), inner = at % to.inner;
      f(at, (outer * from.length + static_cast<size_t>(index[at])) * from.inner + inner);
    }
  });
}

void run(const RunCtx& c) {
  by_type(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in(0).as<T>().data();
    T* y = c.out(0).as<T>().data();
    for_each_place(c.in(0).shape(), c.in(1), c.attrs,
                   [=](size_t at, size_t from) { y[at] = x[from]; });
  });
}

void infer_grad(const InferCtx& c) { c.out = {c.in[0]}; }

void run_grad(const RunCtx& c) {  // (x, index, dy) -> dx
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* dy = c.in(2).as<T>().data();
    auto dx = c.out(0).as<T>();
    std::ranges::fill(dx, zero);
    for_each_place(c.in(0).shape(), c.in(1), c.attrs,
                   [=](size_t at, size_t from) { dx[from] += dy[at]; });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("take_along_axis_grad", {c.in[0], c.in[1], c.dout[0]}, c.attrs), {}};
}

std::vector<OpExample> examples() {
  return {{.in = {random_tensor({3, 4}), integers({3, 2}, {0, 3, 1, 1, 2, 0})},
           .batched = {0, 1},
           .refused = {{{{3, 4}, DType::f64}, {{2, 2}, DType::i64}},
                       {{{3, 4}, DType::f64}, {{3, 2}, DType::f64}}}},
          {.in = {random_tensor({2, 3, 2}), integers({2, 1, 2}, {2, 0, 1, 1})},
           .attrs = {{"axis", int64_t{1}}},
           .batched = {0, 1}}};
}

}  // namespace

std::vector<OpDef> take_along_axis() {
  return {{.name = "take_along_axis",
           .inputs = 2,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "take_along_axis_grad",
           .inputs = 3,
           .shape_of = 0,
           .infer = infer_grad,
           .run = run_grad}};
}

}  // namespace argosy::ops

// argsort(x) {axis=-1, descending=0}: where the elements of x stand in order along an axis, as i64;
// equal ones keep their order. No gradient: take_along_axis with the result has one.
#include <algorithm>
#include <numeric>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  c.in[0].shape.axis(c.attrs.integer("axis", -1));
  c.out = {{c.in[0].shape, DType::i64}};
}

void run(const RunCtx& c) {
  const Shape& shape = c.in(0).shape();
  const AxisSpan span(shape, shape.axis(c.attrs.integer("axis", -1)));
  const bool descending = c.attrs.integer("descending") != 0;
  int64_t* places = c.out(0).as<int64_t>().data();
  const std::span<int64_t> order =
      scratch<int64_t, struct ArgsortOrder>(static_cast<int64_t>(span.length));
  by_type(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in(0).as<T>().data();
    for (size_t lane = 0; lane < span.outer * span.inner; ++lane) {
      const size_t first = lane / span.inner * span.length * span.inner + lane % span.inner;
      const auto value = [&](int64_t i) { return x[first + static_cast<size_t>(i) * span.inner]; };
      std::iota(order.begin(), order.end(), 0);
      std::ranges::sort(order, [&](int64_t a, int64_t b) {
        const T left = value(descending ? b : a), right = value(descending ? a : b);
        return left < right || (!(right < left) && a < b);
      });
      for (size_t i = 0; i < span.length; ++i) places[first + i * span.inner] = order[i];
    }
  });
}

std::vector<OpExample> examples() {
  return {{.in = {spread_tensor({3, 4, 2})}, .attrs = {{"axis", int64_t{1}}}},
          {.in = {spread_tensor({3, 4})}, .attrs = {{"descending", int64_t{1}}}},
          {.in = {integers({3, 2}, {5, 4, 3, 3, 1, 2})}}};
}

}  // namespace

std::vector<OpDef> argsort() {
  return {{.name = "argsort", .infer = infer, .run = run, .examples = examples}};
}

}  // namespace argosy::ops

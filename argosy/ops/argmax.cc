// argmax(x) {axis=-1, keepdim=1}: index of the greatest element along an axis, as i64; of equal
// ones the first.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  Shape out = c.in[0].shape;
  const int axis = out.axis(c.attrs.integer("axis", -1));
  check<ConfigError>(out[axis] != 0, "axis ", axis, " of ", out, " has no elements");
  out[axis] = 1;
  if (c.attrs.integer("keepdim") == 0 && out.rank() > 1) out.erase(axis);
  c.out = {{out, DType::i64}};
}

void run(const RunCtx& c) {
  const Shape& shape = c.in(0).shape();
  const AxisSpan span(shape, shape.axis(c.attrs.integer("axis", -1)));
  by_type(c.in(0).dtype(), [&](auto kind) {
    using T = decltype(kind);
    int64_t* out = c.out(0).as<int64_t>().data();
    for (size_t outer = 0; outer < span.outer; ++outer, out += span.inner) {
      const T* x = c.in(0).as<T>().data() + outer * span.length * span.inner;
      std::fill_n(out, span.inner, 0);
      for (size_t k = 1; k < span.length; ++k)
        for (size_t i = 0; i < span.inner; ++i)
          if (x[k * span.inner + i] > x[static_cast<size_t>(out[i]) * span.inner + i])
            out[i] = static_cast<int64_t>(k);
    }
  });
}

std::vector<OpExample> examples() {
  const Tensor x = random_tensor({3, 4, 2});
  return {{.in = {x}, .refused = {{{{3, 0}, DType::f64}}, {{{}, DType::f64}}}},
          {.in = {x}, .attrs = {{"axis", 1}, {"keepdim", 1}}},
          {.in = {x}, .attrs = {{"axis", 0}}, .batched = {}},
          {.in = {integers({2, 3}, {1, 5, 5, 2, 2, 0})}}};
}

}  // namespace

std::vector<OpDef> argmax() {
  return {{.name = "argmax", .infer = infer, .run = run, .examples = examples}};
}

}  // namespace argosy::ops

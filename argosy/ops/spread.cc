// spread(d, x): the gradient of a reduction of x, each element of d repeated over the axes it was
// reduced from; with mean=1 divided by how many they were.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  const Shape expected = reduced_shape(c.in[1].shape, c.attrs);
  check<ConfigError>(fits(c.in[0].shape, expected), "expected a reduction of shape ", expected,
                     ", got ", c.in[0].shape);
  c.out = {c.in[1]};
}

void run(const RunCtx& c) {
  const int64_t n = c.out(0).numel();
  if (n == 0) return;
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* d = c.in(0).as<T>().data();
    T* dx = c.out(0).as<T>().data();
    const int64_t reduced = n / c.in(0).numel();
    const T count = c.attrs.integer("mean") != 0 ? static_cast<T>(reduced) : T{1};
    const Shape& shape = c.out(0).shape();
    const Broadcast plan(shape, kept_shape(shape, c.attrs), shape);
    vectorized([&plan, d, dx, count] {
      for (const BroadcastRow& row : plan.rows) {
        T* to = dx + row.a;
        const T* from = d + row.b;
        if (plan.b_step == 0) {
          const T value = from[0] / count;
          for (size_t i = 0; i < plan.length; ++i) to[i] = value;
        } else {
          for (size_t i = 0; i < plan.length; ++i) to[i] = from[i] / count;
        }
      }
    });
  });
}

}  // namespace

std::vector<OpDef> spread() {
  return {{.name = "spread", .inputs = 2, .shape_of = 1, .infer = infer, .run = run}};
}

}  // namespace argosy::ops

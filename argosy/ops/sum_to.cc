// sum_to(x, like) = x summed over the axes along which `like` was broadcast to x's shape.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  expect_float(c, 0);
  const Shape full = broadcast(c.in[0].shape, c.in[1].shape);
  check<ConfigError>(fits(full, c.in[0].shape), c.in[1].shape, " does not broadcast to ",
                     c.in[0].shape);
  c.out = {{c.in[1].shape, c.in[0].dtype}};
}

void run(const RunCtx& c) {
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (c.in(0).numel() == c.out(0).numel()) {  // nothing was broadcast: often in place
      if (c.in(0).data() != c.out(0).data())
        std::ranges::copy(c.in(0).as<T>(), c.out(0).as<T>().begin());
      return;
    }
    auto y = c.out(0).as<T>();
    std::ranges::fill(y, T{0});
    sum_into(c.in(0), c.in(1).shape(), y);
  });
}

}  // namespace

std::vector<OpDef> sum_to() {
  return {{.name = "sum_to",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .shape_of = 1,
           .infer = infer,
           .run = run}};
}

}  // namespace argosy::ops

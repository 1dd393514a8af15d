// max(x) {axes=[...], keepdim=1}: the largest element over some axes, or over all as [1]. Its
// gradient goes to the first of equal ones.
#include "argosy/ops/max_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  run_extreme(c, -std::numeric_limits<double>::infinity(), [](auto a, auto b) { return a > b; });
}

void infer_grad(const InferCtx& c) { c.out = {c.in[0], {c.in[1].shape, DType::i64}}; }

void run_grad(const RunCtx& c) {  // (x, y, d) -> (dx, where in x each y was first found)
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Shape& shape = c.in(0).shape();
    const T *x = c.in(0).as<T>().data(), *y = c.in(1).as<T>().data(), *d = c.in(2).as<T>().data();
    auto dx = c.out(0).as<T>();
    auto first = c.out(1).as<int64_t>();
    std::ranges::fill(dx, T{0});
    std::ranges::fill(first, int64_t{-1});
    if (dx.empty()) return;
    const Broadcast plan(shape, kept_shape(shape, c.attrs), shape);
    for (const BroadcastRow& row : plan.rows) {
      for (size_t i = 0; i < plan.length; ++i) {
        const size_t to = row.b + i * plan.b_step;
        if (first[to] < 0 && x[row.a + i] == y[to]) first[to] = static_cast<int64_t>(row.a + i);
      }
    }
    for (size_t i = 0; i < first.size(); ++i)
      if (first[i] >= 0) dx[static_cast<size_t>(first[i])] = d[i];
  });
}

}  // namespace

std::vector<OpDef> max() {
  return {{.name = "max",
           .infer = infer_reduction,
           .run = run,
           .grad = grad_extreme,
           .examples = examples_extreme},
          {.name = "extreme_grad", .inputs = 3, .infer = infer_grad, .run = run_grad}};
}

}  // namespace argosy::ops

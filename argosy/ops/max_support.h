#pragma once

#include <limits>

#include "argosy/ops/value_support.h"

/// Shared by the reductions max and min.
namespace argosy::ops {

/// y = the element of x that is better(element, other) than all others it is reduced with, or NaN
/// if one of them is; `worst` is no better than any. Throws DataError if there is none.
template <class Better>
void run_extreme(const RunCtx& c, double worst, Better better) {
  const Tensor& x_in = c.in(0);
  if (c.out(0).numel() == 0) return;
  check<DataError>(x_in.numel() > 0, "nothing to reduce in ", x_in.shape(), " to ",
                   c.out(0).shape(), ", expected one element or more");
  by_float(x_in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto pick = [=](T held, T v) { return better(v, held) || v != v ? v : held; };
    const T* x = x_in.as<T>().data();
    const auto start = static_cast<T>(worst);
    std::ranges::fill(c.out(0).as<T>(), start);
    const Broadcast plan(x_in.shape(), kept_shape(x_in.shape(), c.attrs), x_in.shape());
    vectorized([&plan, x, y = c.out(0).as<T>().data(), start, pick] {
      for (const BroadcastRow& row : plan.rows) {
        const T* from = x + row.a;
        T* to = y + row.b;
        if (plan.b_step == 0) {
          const auto at = [from](size_t i) { return from[i]; };
          to[0] = pick(to[0], fold_lanes(plan.length, start, at, pick));
        } else {
          for (size_t i = 0; i < plan.length; ++i) to[i] = pick(to[i], from[i]);
        }
      }
    });
  });
}

/// The gradient goes to the first element that equals the result.
inline std::vector<Var> grad_extreme(const GradCtx& c) {
  const std::array in{c.in[0], c.out[0], c.dout[0]};
  return {c.g.apply_all("extreme_grad", in, c.attrs)[0]};
}

inline std::vector<OpExample> examples_extreme() {
  const Tensor x = spread_tensor({3, 4, 2});
  const auto over = [&](std::vector<int64_t> axes, int64_t keepdim, std::vector<int> batched) {
    return OpExample{.in = {x},
                     .attrs = {{"axes", std::move(axes)}, {"keepdim", keepdim}},
                     .batched = std::move(batched),
                     .refused = {{{{3, 4, 2}, DType::i64}}}};
  };
  // Over an axis of the batch an empty batch has no largest element.
  return {{.in = {x}, .batched = {}}, over({1}, 0, {0}), over({-1}, 1, {0}), over({0, 2}, 1, {})};
}

}  // namespace argosy::ops

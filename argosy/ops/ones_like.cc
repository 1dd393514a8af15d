// ones_like(x): ones of x's type and shape, the seed of a backward pass; zeros_like likewise.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

template <int kValue>
void run(const RunCtx& c) {
  by_float(c.out(0).dtype(), [&](auto zero) {
    std::ranges::fill(c.out(0).as<decltype(zero)>(), static_cast<decltype(zero)>(kValue));
  });
}

std::vector<OpExample> examples() { return {{.in = {random_tensor({3, 4})}}}; }

}  // namespace

std::vector<OpDef> ones_like() {
  return {{.name = "ones_like",
           .shape_of = 0,
           .infer = same_float,
           .run = run<1>,
           .examples = examples},
          {.name = "zeros_like",
           .shape_of = 0,
           .infer = same_float,
           .run = run<0>,
           .examples = examples}};
}

}  // namespace argosy::ops

// leaky_relu(x) {alpha=0.02}: x where it is positive, alpha * x elsewhere.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

double alpha_of(const Attrs& attrs) { return attrs.real("alpha", 0.02); }

void run(const RunCtx& c) {
  const double alpha = alpha_of(c.attrs);
  map(c, [=](auto x) {
    const auto leak = static_cast<decltype(x)>(alpha) * x;
    return x > 0 ? x : leak;
  });
}

void run_grad(const RunCtx& c) {  // (x, dy) -> dx
  const double alpha = alpha_of(c.attrs);
  map2(c, [=](auto x, auto dy) {
    const auto leak = static_cast<decltype(x)>(alpha) * dy;
    return x > 0 ? dy : leak;
  });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("leaky_relu_grad", {c.in[0], c.dout[0]}, c.attrs)};
}

std::vector<OpExample> examples() {
  return {{.in = {spread_tensor({3, 4})}},
          {.in = {spread_tensor({3, 4})}, .attrs = {{"alpha", 0.3}}}};
}

}  // namespace

std::vector<OpDef> leaky_relu() {
  return {{.name = "leaky_relu",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "leaky_relu_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

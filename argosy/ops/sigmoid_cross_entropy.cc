// sigmoid_cross_entropy(x, label): the loss of a logit x, max(x, 0) - x * label + log(1 +
// exp(-|x|)), element by element; stable for any x. Labels are 0 to 1, soft ones too.
#include <cmath>

#include "argosy/ops/label_support.h"
#include "argosy/ops/value_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  check_labels(c.in(1));
  map2(c, [](auto x, auto z) {
    const auto positive = x > 0 ? x : decltype(x){0};
    return positive - x * z + math::log1p(math::exp(-std::abs(x)));
  });
}

void run_grad(const RunCtx& c) {  // (x, label, d) -> dx
  map3(c, [](auto x, auto z, auto d) { return (math::sigmoid(x) - z) * d; });
}

std::vector<Var> grad(const GradCtx& c) {
  const Var x = c.in[0], label = c.in[1], d = c.dout[0];
  Var dx, dlabel;
  if (c.needs[0]) dx = c.g.apply("sigmoid_cross_entropy_grad", {x, label, d});
  if (c.needs[1]) dlabel = c.g.apply("scale", {c.g.apply("mul", {x, d})}, {{"scale", -1.0}});
  return {dx, dlabel};
}

std::vector<OpExample> examples() {
  return {{.in = {random_tensor({3, 4}, -4.0, 4.0), random_tensor({3, 4}, 0.0, 1.0, 2)},
           .batched = {0, 1},
           .refused = {{{{3, 4}, DType::f64}, {{3, 1}, DType::f64}},
                       {{{3, 4}, DType::f64}, {{3, 4}, DType::i64}}}}};
}

}  // namespace

std::vector<OpDef> sigmoid_cross_entropy() {
  return {{.name = "sigmoid_cross_entropy",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "sigmoid_cross_entropy_grad",
           .inputs = 3,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad}};
}

}  // namespace argosy::ops

// sin(x) and cos(x), element by element.
#include <cmath>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run_sin(const RunCtx& c) {
  map(c, [](auto x) { return std::sin(x); });
}

void run_cos(const RunCtx& c) {
  map(c, [](auto x) { return std::cos(x); });
}

std::vector<Var> grad_sin(const GradCtx& c) {
  return {c.g.apply("mul", {c.dout[0], c.g.apply("cos", {c.in[0]})})};
}

std::vector<Var> grad_cos(const GradCtx& c) {
  const Var slope = c.g.apply("scale", {c.g.apply("sin", {c.in[0]})}, {{"scale", -1.0}});
  return {c.g.apply("mul", {c.dout[0], slope})};
}

std::vector<OpExample> examples() { return {{.in = {random_tensor({3, 4}, -3.0, 3.0)}}}; }

}  // namespace

std::vector<OpDef> sin() {
  return {{.name = "sin",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_sin,
           .grad = grad_sin,
           .examples = examples},
          {.name = "cos",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_cos,
           .grad = grad_cos,
           .examples = examples}};
}

}  // namespace argosy::ops

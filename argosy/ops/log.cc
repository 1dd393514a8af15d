// log(x): the natural logarithm, element by element.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run(const RunCtx& c) {
  map(c, [](auto x) { return math::log(x); });
}

std::vector<Var> grad(const GradCtx& c) { return {c.g.apply("div", {c.dout[0], c.in[0]})}; }

std::vector<OpExample> examples() { return {{.in = {random_tensor({3, 4}, 0.5, 2.0)}}}; }

}  // namespace

std::vector<OpDef> log() {
  return {{.name = "log",
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

// log_loss(p, label) {epsilon=1e-4}: the loss of a probability p,
// -label * log(p + epsilon) - (1 - label) * log(1 - p + epsilon), element by element. Labels are 0
// to 1, soft ones too.
#include "argosy/ops/label_support.h"
#include "argosy/ops/value_support.h"

namespace argosy::ops {
namespace {

double epsilon_of(const Attrs& attrs) { return attrs.real("epsilon", 1e-4); }

void run(const RunCtx& c) {
  check_labels(c.in(1));
  const double epsilon = epsilon_of(c.attrs);
  map2(c, [=](auto p, auto z) {
    const auto e = static_cast<decltype(p)>(epsilon);
    return -z * math::log(p + e) - (1 - z) * math::log(1 - p + e);
  });
}

void run_grad(const RunCtx& c) {  // (p, label, d) -> dp
  const double epsilon = epsilon_of(c.attrs);
  map3(c, [=](auto p, auto z, auto d) {
    const auto e = static_cast<decltype(p)>(epsilon);
    return ((1 - z) / (1 - p + e) - z / (p + e)) * d;
  });
}

void run_label_grad(const RunCtx& c) {  // (p, d) -> dlabel
  const double epsilon = epsilon_of(c.attrs);
  map2(c, [=](auto p, auto d) {
    const auto e = static_cast<decltype(p)>(epsilon);
    return (math::log(1 - p + e) - math::log(p + e)) * d;
  });
}

std::vector<Var> grad(const GradCtx& c) {
  const Var p = c.in[0], label = c.in[1], d = c.dout[0];
  return {c.needs[0] ? c.g.apply("log_loss_grad", {p, label, d}, c.attrs) : Var{},
          c.needs[1] ? c.g.apply("log_loss_label_grad", {p, d}, c.attrs) : Var{}};
}

std::vector<OpExample> examples() {
  const Tensor p = random_tensor({3, 1}, 0.1, 0.9), label = random_tensor({3, 1}, 0.0, 1.0, 2);
  return {{.in = {p, label},
           .batched = {0, 1},
           .refused = {{{{3, 1}, DType::f64}, {{3, 2}, DType::f64}},
                       {{{3, 1}, DType::f64}, {{3, 1}, DType::i64}}}},
          {.in = {p, label}, .attrs = {{"epsilon", 0.1}}, .batched = {0, 1}}};
}

}  // namespace

std::vector<OpDef> log_loss() {
  return {{.name = "log_loss",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "log_loss_grad",
           .inputs = 3,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_grad},
          {.name = "log_loss_label_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_float,
           .run = run_label_grad}};
}

}  // namespace argosy::ops

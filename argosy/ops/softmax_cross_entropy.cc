// softmax_cross_entropy(logits [..., classes], label) -> (loss [..., 1], probabilities): the
// softmax and the loss in one, which is stable where a probability underflows. A hard label is an
// integer
// [..., 1]; with soft_label=1 it is a distribution of the logits' shape.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

bool is_soft(const Attrs& attrs) { return attrs.integer("soft_label") != 0; }

void infer(const InferCtx& c) {
  expect_float(c, 0);
  const Shape &logits = c.in[0].shape, &label = c.in[1].shape;
  check<ConfigError>(logits.rank() >= 1, "logits need an axis of classes");
  Shape loss = logits;
  loss[-1] = 1;
  if (is_soft(c.attrs)) {
    expect_same_type(c, 0, 1);
    check<ConfigError>(fits(label, logits), "a soft label has the logits' shape ", logits, ", got ",
                       label);
  } else {
    expect_integer(c, 1);
    check<ConfigError>(fits(label, loss), "a hard label must be ", loss, ", got ", label);
  }
  c.out = {{loss, c.in[0].dtype}, c.in[0]};
}

/// Probabilities of one row; returns log(sum(exp(x))).
template <class T>
T softmax_row(const T* x, T* p, size_t classes) {
  T most = x[0];
  for (size_t i = 1; i < classes; ++i) most = x[i] > most ? x[i] : most;
  for (size_t i = 0; i < classes; ++i) p[i] = math::exp(x[i] - most);
  const T total = math::sum(p, classes);
  const T inverse = 1 / total;
  for (size_t i = 0; i < classes; ++i) p[i] *= inverse;
  return most + math::log(total);
}

void run(const RunCtx& c) {
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in(0).as<T>().data();
    T *loss = c.out(0).as<T>().data(), *p = c.out(1).as<T>().data();
    const auto classes = static_cast<size_t>(c.in(0).shape()[-1]);
    const auto rows = static_cast<size_t>(c.out(0).numel());
    // The log of each row's normalizer goes to loss first, then the label's logit is taken off.
    vectorized([=] {
      for (size_t r = 0; r < rows; ++r)
        loss[r] = softmax_row(x + r * classes, p + r * classes, classes);
    });
    if (is_soft(c.attrs)) {
      const T* label = c.in(1).as<T>().data();
      for (size_t r = 0; r < rows; ++r) {
        T total = 0;
        for (size_t i = 0; i < classes; ++i)
          total += label[r * classes + i] * (loss[r] - x[r * classes + i]);
        loss[r] = total;
      }
      return;
    }
    by_integer(c.in(1).dtype(), [&](auto kind) {
      auto label = c.in(1).as<decltype(kind)>();
      for (size_t r = 0; r < rows; ++r) {
        const auto target = static_cast<size_t>(label[r]);
        check<DataError>(target < classes, "softmax_cross_entropy: label ", label[r], " in row ", r,
                         ", expected 0 to ", classes - 1);
        loss[r] -= x[r * classes + target];
      }
    });
  });
}

void infer_grad(const InferCtx& c) { c.out = {c.in[1]}; }

void run_grad(const RunCtx& c) {  // (label, p, dloss) -> dlogits
  by_float(c.in(1).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *p = c.in(1).as<T>().data(), *dloss = c.in(2).as<T>().data();
    T* dx = c.out(0).as<T>().data();
    const auto rows = static_cast<size_t>(c.in(2).numel());
    const auto classes = static_cast<size_t>(c.in(1).shape()[-1]);
    if (is_soft(c.attrs)) {
      const T* label = c.in(0).as<T>().data();
      for (size_t r = 0; r < rows; ++r) {
        T mass = 0;
        for (size_t i = 0; i < classes; ++i) mass += label[r * classes + i];
        for (size_t i = 0; i < classes; ++i) {
          const size_t at = r * classes + i;
          dx[at] = (p[at] * mass - label[at]) * dloss[r];
        }
      }
      return;
    }
    by_integer(c.in(0).dtype(), [&](auto kind) {
      auto label = c.in(0).as<decltype(kind)>();
      vectorized([=] {
        for (size_t r = 0; r < rows; ++r)
          for (size_t i = 0; i < classes; ++i) dx[r * classes + i] = p[r * classes + i] * dloss[r];
      });
      for (size_t r = 0; r < rows; ++r) dx[r * classes + static_cast<size_t>(label[r])] -= dloss[r];
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  check<ConfigError>(!c.dout[1],
                     "softmax_cross_entropy: its probabilities have no gradient, use softmax");
  return {c.g.apply("softmax_cross_entropy_grad", {c.in[1], c.out[1], c.dout[0]}, c.attrs), {}};
}

std::vector<OpExample> examples() {
  const std::vector<std::vector<VarType>> refused = {{{{3, 4}, DType::f64}, {{3, 4}, DType::i64}},
                                                     {{{3, 4}, DType::f64}, {{2, 1}, DType::i64}}};
  return {{.in = {random_tensor({3, 4}), integers({3, 1}, {1, 0, 3})},
           .batched = {0, 1},
           .refused = refused},
          {.in = {random_tensor({3, 4}), random_tensor({3, 4}, 0.0, 1.0, 2)},
           .attrs = {{"soft_label", int64_t{1}}},
           .batched = {0, 1}}};
}

}  // namespace

std::vector<OpDef> softmax_cross_entropy() {
  return {
      {.name = "softmax_cross_entropy",
       .inputs = 2,
       .infer = infer,
       .run = run,
       .grad = grad,
       .examples = examples},
      {.name = "softmax_cross_entropy_grad", .inputs = 3, .infer = infer_grad, .run = run_grad}};
}

}  // namespace argosy::ops

// cross_entropy(p [..., classes], label) {soft_label=0, ignore_index=-100} -> loss [..., 1]: the
// loss of probabilities, -log(p[label]). A hard label is an integer [..., 1], and a row labelled
// ignore_index counts nothing; with soft_label=1 it is a distribution of p's shape. Probabilities
// count as at least 1e-20, so that the loss is finite.
#include "argosy/ops/value_support.h"

namespace argosy::ops {
namespace {

constexpr double kLeast = 1e-20;

template <class T>
T bounded(T p) {
  return p < static_cast<T>(kLeast) ? static_cast<T>(kLeast) : p;
}

bool is_soft(const Attrs& attrs) { return attrs.integer("soft_label") != 0; }
int64_t ignored_of(const Attrs& attrs) { return attrs.integer("ignore_index", -100); }

void infer(const InferCtx& c) {
  expect_float(c, 0);
  const Shape &p = c.in[0].shape, &label = c.in[1].shape;
  check<ConfigError>(p.rank() >= 1, "probabilities need an axis of classes, got ", c.in[0]);
  Shape loss = p;
  loss[-1] = 1;
  if (is_soft(c.attrs)) {
    expect_same_type(c, 0, 1);
    check<ConfigError>(fits(label, p), "a soft label has the shape of p, ", p, ", got ", label);
  } else {
    expect_integer(c, 1);
    check<ConfigError>(fits(label, loss), "a hard label must be ", loss, ", got ", label);
  }
  c.out = {{loss, c.in[0].dtype}};
}

/// f(row, class) for each hard label that counts, skip(row) for the others.
template <class F, class Skip>
void for_each_label(const Tensor& label, size_t classes, int64_t ignored, F f, Skip skip) {
  by_integer(label.dtype(), [&](auto kind) {
    const auto values = label.as<decltype(kind)>();
    for (size_t r = 0; r < values.size(); ++r) {
      if (values[r] == ignored) {
        skip(r);
        continue;
      }
      const auto target = static_cast<size_t>(values[r]);
      check<DataError>(target < classes, "cross_entropy: label ", values[r], " in row ", r,
                       ", expected 0 to ", static_cast<int64_t>(classes) - 1);
      f(r, target);
    }
  });
}

void run(const RunCtx& c) {
  const auto classes = static_cast<size_t>(c.in(0).shape()[-1]);
  const auto rows = static_cast<size_t>(c.out(0).numel());
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* p = c.in(0).as<T>().data();
    T* loss = c.out(0).as<T>().data();
    if (is_soft(c.attrs)) {
      const T* label = c.in(1).as<T>().data();
      vectorized([=] {
        for (size_t r = 0; r < rows; ++r) {
          const T *pr = p + r * classes, *lr = label + r * classes;
          loss[r] =
              -sum_of<T>(classes, [=](size_t i) { return lr[i] * math::log(bounded(pr[i])); });
        }
      });
      return;
    }
    for_each_label(
        c.in(1), classes, ignored_of(c.attrs),
        [=](size_t row, size_t target) { loss[row] = bounded(p[row * classes + target]); },
        [=](size_t row) { loss[row] = 1; });
    vectorized([=] {
      for (size_t r = 0; r < rows; ++r) loss[r] = 0 - math::log(loss[r]);
    });
  });
}

void run_grad(const RunCtx& c) {  // (p, label, dloss) -> dp
  const auto classes = static_cast<size_t>(c.in(0).shape()[-1]);
  const auto rows = static_cast<size_t>(c.in(2).numel());
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *p = c.in(0).as<T>().data(), *dloss = c.in(2).as<T>().data();
    T* dp = c.out(0).as<T>().data();
    if (is_soft(c.attrs)) {
      const T* label = c.in(1).as<T>().data();
      vectorized([=] {
        for (size_t r = 0; r < rows; ++r)
          for (size_t at = r * classes; at < (r + 1) * classes; ++at)
            dp[at] = -label[at] * dloss[r] / bounded(p[at]);
      });
      return;
    }
    std::ranges::fill(c.out(0).as<T>(), T{0});
    for_each_label(
        c.in(1), classes, ignored_of(c.attrs),
        [=](size_t row, size_t target) {
          const size_t at = row * classes + target;
          dp[at] = -dloss[row] / bounded(p[at]);
        },
        [](size_t) {});
  });
}

void run_label_grad(const RunCtx& c) {  // (p, dloss) -> dlabel, of a soft label
  const auto classes = static_cast<size_t>(c.in(0).shape()[-1]);
  const auto rows = static_cast<size_t>(c.in(1).numel());
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *p = c.in(0).as<T>().data(), *dloss = c.in(1).as<T>().data();
    T* dlabel = c.out(0).as<T>().data();
    vectorized([=] {
      for (size_t r = 0; r < rows; ++r)
        for (size_t at = r * classes; at < (r + 1) * classes; ++at)
          dlabel[at] = -math::log(bounded(p[at])) * dloss[r];
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  const Var p = c.in[0], label = c.in[1], d = c.dout[0];
  return {c.needs[0] ? c.g.apply("cross_entropy_grad", {p, label, d}, c.attrs) : Var{},
          c.needs[1] ? c.g.apply("cross_entropy_label_grad", {p, d}) : Var{}};
}

std::vector<OpExample> examples() {
  const Tensor p = random_tensor({3, 4}, 0.1, 0.9);
  const Tensor label = integers({3, 1}, {1, 0, 3});
  return {{.in = {p, label},
           .batched = {0, 1},
           .refused = {{{{3, 4}, DType::f64}, {{3, 4}, DType::i64}},
                       {{{3, 4}, DType::f64}, {{2, 1}, DType::i64}},
                       {{{3, 4}, DType::f64}, {{3, 1}, DType::f64}}}},
          {.in = {p, label}, .attrs = {{"ignore_index", int64_t{0}}}, .batched = {0, 1}},
          {.in = {random_tensor({2, 2, 3}, 0.1, 0.9), integers({2, 2, 1}, {0, 2, -100, 1})},
           .batched = {0, 1}},
          {.in = {p, random_tensor({3, 4}, 0.0, 1.0, 2)},
           .attrs = {{"soft_label", int64_t{1}}},
           .batched = {0, 1},
           .refused = {{{{3, 4}, DType::f64}, {{3, 1}, DType::f64}}}}};
}

}  // namespace

std::vector<OpDef> cross_entropy() {
  return {{.name = "cross_entropy",
           .inputs = 2,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "cross_entropy_grad", .inputs = 3, .infer = same_as_first, .run = run_grad},
          {.name = "cross_entropy_label_grad",
           .inputs = 2,
           .infer = same_as_first,
           .run = run_label_grad}};
}

}  // namespace argosy::ops

#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

bool is_soft(const Attrs& attrs) { return attrs.integer("soft_label") != 0; }

/// A row's probabilities; returns log(sum(exp(x))).
ARGOSY_DEVICE float softmax_row(const float* x, float* p, size_t classes) {
  float most = x[0], total = 0;
  for (size_t i = 1; i < classes; ++i) most = x[i] > most ? x[i] : most;
  for (size_t i = 0; i < classes; ++i) {
    p[i] = math::exp(x[i] - most);
    total += p[i];
  }
  const float inverse = 1 / total;
  for (size_t i = 0; i < classes; ++i) p[i] *= inverse;
  return most + math::log(total);
}

struct SoftRow {
  const float *x, *label;
  float *loss, *p;
  size_t classes;
  ARGOSY_DEVICE void operator()(size_t row) const {
    const size_t at = row * classes;
    const float normalizer = softmax_row(x + at, p + at, classes);
    float total = 0;
    for (size_t i = at; i < at + classes; ++i) total += label[i] * (normalizer - x[i]);
    loss[row] = total;
  }
};

template <class I>
struct HardRow {
  const float* x;
  const I* label;
  float *loss, *p;
  size_t classes;
  device::Fault* fault;
  ARGOSY_DEVICE void operator()(size_t row) const {
    const float normalizer = softmax_row(x + row * classes, p + row * classes, classes);
    const auto target = static_cast<uint64_t>(label[row]);
    if (target >= classes) {
      note(fault, FaultOp::softmax_cross_entropy, static_cast<int64_t>(label[row]),
           static_cast<int64_t>(row), static_cast<int64_t>(classes));
      return;
    }
    loss[row] = normalizer - x[row * classes + target];
  }
};

void run(const RunCtx& c, Stream& stream) {
  const auto classes = static_cast<size_t>(c.in(0).shape()[-1]);
  const size_t rows = count(c.out(0));
  const float* x = floats(c.in(0));
  float *loss = floats(c.out(0)), *p = floats(c.out(1));
  if (is_soft(c.attrs))
    return for_each_index(stream, rows, SoftRow{x, floats(c.in(1)), loss, p, classes});
  by_integer(c.in(1).dtype(), [&](auto kind) {
    using I = decltype(kind);
    for_each_index(stream, rows,
                   HardRow<I>{x, c.in(1).as<I>().data(), loss, p, classes, stream.fault()});
  });
}

struct SoftRowGrad {
  const float *label, *p, *dloss;
  float* dx;
  size_t classes;
  ARGOSY_DEVICE void operator()(size_t row) const {
    const size_t at = row * classes;
    float mass = 0;
    for (size_t i = at; i < at + classes; ++i) mass += label[i];
    for (size_t i = at; i < at + classes; ++i) dx[i] = (p[i] * mass - label[i]) * dloss[row];
  }
};

template <class I>
struct HardGrad {
  const I* label;
  const float *p, *dloss;
  float* dx;
  size_t classes;
  ARGOSY_DEVICE void operator()(size_t i) const {
    const size_t row = i / classes;
    const bool target = static_cast<uint64_t>(label[row]) == i % classes;
    const float d = dloss[row], all = p[i] * d;
    dx[i] = target ? all - d : all;
  }
};

void run_grad(const RunCtx& c, Stream& stream) {  // (label, p, dloss) -> dlogits
  const auto classes = static_cast<size_t>(c.in(1).shape()[-1]);
  const float *p = floats(c.in(1)), *dloss = floats(c.in(2));
  float* dx = floats(c.out(0));
  if (is_soft(c.attrs))
    return for_each_index(stream, count(c.in(2)),
                          SoftRowGrad{floats(c.in(0)), p, dloss, dx, classes});
  by_integer(c.in(0).dtype(), [&](auto kind) {
    using I = decltype(kind);
    for_each_index(stream, count(c.out(0)),
                   HardGrad<I>{c.in(0).as<I>().data(), p, dloss, dx, classes});
  });
}

}  // namespace

std::vector<DeviceKernel> softmax_cross_entropy() {
  return {{"softmax_cross_entropy", run}, {"softmax_cross_entropy_grad", run_grad}};
}

}  // namespace argosy::ops::on_device

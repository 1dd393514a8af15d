// batch_norm(x, scale, bias, mean, variance) {epsilon=1e-5, momentum=0.9, is_test=0}
//   -> (y, new_mean, new_variance, saved_mean, saved_inv_std)
// y = (x - m) / sqrt(v + epsilon) * scale + bias for each channel, which is axis 1 of x. Training
// takes m and v (biased) from the batch and moves the running mean and variance towards them by
// 1 - momentum; a test, and a batch without elements, takes the running ones and leaves them.
#include <array>
#include <cmath>

#include "argosy/ops/value_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  expect_float(c, 0);
  const Shape& x = c.in[0].shape;
  check<ConfigError>(x.rank() >= 2, "x must be [batch, channels, ...], got ", c.in[0]);
  constexpr std::array kNames{"x", "scale", "bias", "mean", "variance"};
  for (size_t i = 1; i < c.in.size(); ++i) {
    expect_same_type(c, 0, i);
    check<ConfigError>(fits(c.in[i].shape, Shape{x[1]}), kNames[i], " must be ", Shape{x[1]},
                       ", got ", c.in[i].shape);
  }
  const VarType channel{c.in[1].shape, c.in[0].dtype};
  c.out = {c.in[0], channel, channel, channel, channel};
}

/// total[c] = the sum of f(i, c) over the elements i of channel c.
template <class T, class F>
void sum_channels(const AxisSpan& span, T* total, F f) {
  const size_t channels = span.length, inner = span.inner;
  for (size_t k = 0; k < channels; ++k) total[k] = 0;
  for (size_t n = 0; n < span.outer; ++n) {
    const size_t row = n * channels * inner;
    if (inner == 1) {
      for (size_t k = 0; k < channels; ++k) total[k] += f(row + k, k);
    } else {
      for (size_t k = 0; k < channels; ++k)
        total[k] += sum_of<T>(inner, [=](size_t i) { return f(row + k * inner + i, k); });
    }
  }
}

/// y[i] = f(i, c) for the elements i of every channel c.
template <class T, class F>
void map_channels(const AxisSpan& span, T* y, F f) {
  const size_t channels = span.length, inner = span.inner;
  for (size_t n = 0; n < span.outer; ++n) {
    const size_t row = n * channels * inner;
    if (inner == 1) {
      for (size_t k = 0; k < channels; ++k) y[row + k] = f(row + k, k);
    } else {
      for (size_t k = 0; k < channels; ++k)
        for (size_t i = 0; i < inner; ++i) y[row + k * inner + i] = f(row + k * inner + i, k);
    }
  }
}

/// Mean and inverse deviation to normalise with, and the running ones after this batch.
template <class T>
struct Moments {
  T *new_mean, *new_variance, *mean, *inv_std;
};

template <class T>
void keep_moments(const RunCtx& c, const Moments<T>& out, T epsilon) {
  const auto mean = c.in(3).as<T>(), variance = c.in(4).as<T>();
  for (size_t k = 0; k < mean.size(); ++k) {
    out.new_mean[k] = mean[k];
    out.new_variance[k] = variance[k];
    out.mean[k] = mean[k];
    out.inv_std[k] = 1 / std::sqrt(variance[k] + epsilon);
  }
}

template <class T>
void batch_moments(const RunCtx& c, const AxisSpan& span, const Moments<T>& out, T epsilon) {
  const T *x = c.in(0).as<T>().data(), *old_mean = c.in(3).as<T>().data(),
          *old_variance = c.in(4).as<T>().data();
  const auto momentum = static_cast<T>(c.attrs.real("momentum", 0.9));
  const T count = static_cast<T>(span.outer * span.inner);
  vectorized([=] {
    T *mean = out.mean, *inv_std = out.inv_std;
    sum_channels(span, mean, [=](size_t i, size_t) { return x[i]; });
    for (size_t k = 0; k < span.length; ++k) mean[k] /= count;
    sum_channels(span, inv_std,
                 [=](size_t i, size_t k) { return (x[i] - mean[k]) * (x[i] - mean[k]); });
    for (size_t k = 0; k < span.length; ++k) {
      const T variance = inv_std[k] / count;
      inv_std[k] = 1 / std::sqrt(variance + epsilon);
      out.new_mean[k] = momentum * old_mean[k] + (1 - momentum) * mean[k];
      out.new_variance[k] = momentum * old_variance[k] + (1 - momentum) * variance;
    }
  });
}

void run(const RunCtx& c) {
  const AxisSpan span(c.in(0).shape(), 1);
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Moments<T> moments{c.out(1).as<T>().data(), c.out(2).as<T>().data(),
                             c.out(3).as<T>().data(), c.out(4).as<T>().data()};
    const auto epsilon = static_cast<T>(c.attrs.real("epsilon", 1e-5));
    if (c.attrs.integer("is_test") != 0 || c.in(0).numel() == 0) {
      keep_moments(c, moments, epsilon);
    } else {
      batch_moments(c, span, moments, epsilon);
    }
    const T *x = c.in(0).as<T>().data(), *scale = c.in(1).as<T>().data(),
            *bias = c.in(2).as<T>().data();
    vectorized([=, y = c.out(0).as<T>().data(), mean = moments.mean, inv_std = moments.inv_std] {
      map_channels(span, y, [=](size_t i, size_t k) {
        return (x[i] - mean[k]) * (inv_std[k] * scale[k]) + bias[k];
      });
    });
  });
}

void infer_grad(const InferCtx& c) {
  c.out = {c.in[1], c.in[1]};
  if (c.attrs.integer("x_grad") != 0) c.out.push_back(c.in[0]);
}

// (x, scale, mean, inv_std, dy) -> (dscale, dbias), with x_grad=1 also dx
void run_grad(const RunCtx& c) {
  const AxisSpan span(c.in(0).shape(), 1);
  const bool fixed = c.attrs.integer("is_test") != 0;  // mean and inv_std do not depend on x
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *x = c.in(0).as<T>().data(), *scale = c.in(1).as<T>().data(),
            *mean = c.in(2).as<T>().data(), *inv_std = c.in(3).as<T>().data(),
            *dy = c.in(4).as<T>().data();
    T *dscale = c.out(0).as<T>().data(), *dbias = c.out(1).as<T>().data();
    T* dx = c.outputs.size() > 2 ? c.out(2).as<T>().data() : nullptr;
    vectorized([=] {
      const auto normal = [=](size_t i, size_t k) { return (x[i] - mean[k]) * inv_std[k]; };
      sum_channels(span, dscale, [=](size_t i, size_t k) { return dy[i] * normal(i, k); });
      sum_channels(span, dbias, [=](size_t i, size_t) { return dy[i]; });
      if (dx == nullptr) return;
      if (fixed) {
        map_channels(span, dx, [=](size_t i, size_t k) { return dy[i] * (inv_std[k] * scale[k]); });
        return;
      }
      const T share = 1 / static_cast<T>(span.outer * span.inner);
      map_channels(span, dx, [=](size_t i, size_t k) {
        const T centred = dy[i] - dbias[k] * share - normal(i, k) * (dscale[k] * share);
        return centred * (inv_std[k] * scale[k]);
      });
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  for (size_t i = 1; i < c.dout.size(); ++i)
    check<ConfigError>(!c.dout[i], "batch_norm: only y has a gradient, result ", i, " has none");
  if (!c.needs[0] && !c.needs[1] && !c.needs[2]) return std::vector<Var>(c.in.size());
  Attrs attrs{{"is_test", c.attrs.integer("is_test")}, {"x_grad", int64_t{c.needs[0]}}};
  const std::array in{c.in[0], c.in[1], c.out[3], c.out[4], c.dout[0]};
  const auto out = c.g.apply_all("batch_norm_grad", in, std::move(attrs));
  return {c.needs[0] ? out[2] : Var{}, out[0], out[1], {}, {}};
}

std::vector<OpExample> examples() {
  const auto channels = [](int64_t n) {
    return std::vector<Tensor>{random_tensor({n}, 0.5, 1.5, 2), random_tensor({n}, 3),
                               random_tensor({n}, 4), random_tensor({n}, 0.5, 1.5, 5)};
  };
  const auto example = [&](const Tensor& x, Attrs attrs) {
    OpExample made{.in = {x}, .attrs = std::move(attrs)};
    for (Tensor& t : channels(x.shape()[1])) made.in.push_back(std::move(t));
    return made;
  };
  const VarType c4{{4}, DType::f64}, c3{{3}, DType::f64};
  OpExample first = example(random_tensor({5, 4}), {});
  first.refused = {{{{4}, DType::f64}, c4, c4, c4, c4},
                   {{{5, 4}, DType::f64}, c3, c4, c4, c4},
                   {{{5, 4}, DType::f64}, c4, c4, c4, {{4}, DType::f32}}};
  return {first, example(random_tensor({2, 3, 5}), {{"momentum", 0.5}, {"epsilon", 0.1}}),
          example(random_tensor({5, 4}), {{"is_test", int64_t{1}}}),
          example(random_tensor({2, 3, 2, 2}), {{"is_test", int64_t{1}}})};
}

}  // namespace

std::vector<OpDef> batch_norm() {
  return {{.name = "batch_norm",
           .inputs = 5,
           .trait = OpTrait::inplace,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "batch_norm_grad", .inputs = 5, .infer = infer_grad, .run = run_grad}};
}

}  // namespace argosy::ops

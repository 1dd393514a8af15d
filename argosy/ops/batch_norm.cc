// batch_norm(x, scale, bias, mean, variance) {epsilon=1e-5, momentum=0.9, is_test=0, sync=0}
//   -> (y, new_mean, new_variance, saved_mean, saved_inv_std)
// y = (x - m) / sqrt(v + epsilon) * scale + bias for each channel, which is axis 1 of x. Training
// takes m and v (biased) from the batch and moves the running mean and variance towards them by 1 -
// momentum; a test, or a batch without elements, uses the running ones and keeps them. With sync=1
// the batch is that of all ranks together.
#include <algorithm>
#include <array>
#include <cmath>

#include "argosy/graph/sum_over_ranks.h"
#include "argosy/ops/value_support.h"

namespace argosy::ops {
namespace {

/// Two for each channel, and how many elements they were made of.
size_t rank_numbers(std::span<const VarType> in, const Attrs& attrs) {
  const bool together = attrs.integer("sync") != 0 && attrs.integer("is_test") == 0;
  return together ? 2 * static_cast<size_t>(in[1].shape[0]) + 1 : 0;
}

bool is_over_ranks(const RunCtx& c) {
  return c.ranks != nullptr && c.attrs.integer("sync") != 0 && c.attrs.integer("is_test") == 0;
}

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

/// The moments over all ranks' batches; false if no rank has an element. Doubles hold the sum of
/// squares of floats well enough for their variance.
template <class T>
bool moments_of_ranks(const RunCtx& c, const AxisSpan& span, const Moments<T>& out, T epsilon) {
  const size_t channels = span.length;
  const std::span<double> numbers = c.ranks->room(2 * channels + 1);
  double *sum = numbers.data(), *squares = sum + channels;
  const T* x = c.in(0).as<T>().data();
  vectorized([=] {
    const auto value = [=](size_t i) { return static_cast<double>(x[i]); };
    sum_channels(span, sum, [=](size_t i, size_t) { return value(i); });
    sum_channels(span, squares, [=](size_t i, size_t) { return value(i) * value(i); });
  });
  numbers.back() = static_cast<double>(span.outer * span.inner);
  c.ranks->add_up(numbers);
  const double count = numbers.back(), momentum = c.attrs.real("momentum", 0.9);
  if (count == 0) return false;
  const auto old_mean = c.in(3).as<T>(), old_variance = c.in(4).as<T>();
  for (size_t k = 0; k < channels; ++k) {
    const double mean = sum[k] / count;
    const double variance = std::max(squares[k] / count - mean * mean, 0.0);
    const auto moved = [&](T old, double now) {
      return static_cast<T>(momentum * static_cast<double>(old) + (1 - momentum) * now);
    };
    out.mean[k] = static_cast<T>(mean);
    out.inv_std[k] = static_cast<T>(1 / std::sqrt(variance + static_cast<double>(epsilon)));
    out.new_mean[k] = moved(old_mean[k], mean);
    out.new_variance[k] = moved(old_variance[k], variance);
  }
  return true;
}

void run(const RunCtx& c) {
  const AxisSpan span(c.in(0).shape(), 1);
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Moments<T> moments{c.out(1).as<T>().data(), c.out(2).as<T>().data(),
                             c.out(3).as<T>().data(), c.out(4).as<T>().data()};
    const auto epsilon = static_cast<T>(c.attrs.real("epsilon", 1e-5));
    if (is_over_ranks(c)) {
      if (!moments_of_ranks(c, span, moments, epsilon)) keep_moments(c, moments, epsilon);
    } else if (c.attrs.integer("is_test") != 0 || c.in(0).numel() == 0) {
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

/// The sums over channels that dx is centred with, and one by the number of their elements.
template <class T>
struct Centre {
  const T *dy, *dy_normal;
  T share;
};

size_t grad_rank_numbers(std::span<const VarType> in, const Attrs& attrs) {
  return attrs.integer("x_grad") != 0 ? rank_numbers(in, attrs) : 0;
}

/// Over the batches of all ranks, from the sums over this one's.
template <class T>
Centre<double> centre_of_ranks(const RunCtx& c, size_t count, const T* dbias, const T* dscale) {
  const size_t channels = static_cast<size_t>(c.in(1).numel());
  const std::span<double> numbers = c.ranks->room(2 * channels + 1);
  std::copy_n(dbias, channels, numbers.begin());
  std::copy_n(dscale, channels, numbers.begin() + static_cast<ptrdiff_t>(channels));
  numbers.back() = static_cast<double>(count);
  c.ranks->add_up(numbers);
  return {numbers.data(), numbers.data() + channels, 1 / std::max(numbers.back(), 1.0)};
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
    const auto normal = [=](size_t i, size_t k) { return (x[i] - mean[k]) * inv_std[k]; };
    vectorized([=] {
      sum_channels(span, dscale, [=](size_t i, size_t k) { return dy[i] * normal(i, k); });
      sum_channels(span, dbias, [=](size_t i, size_t) { return dy[i]; });
      if (dx != nullptr && fixed)
        map_channels(span, dx, [=](size_t i, size_t k) { return dy[i] * (inv_std[k] * scale[k]); });
    });
    if (dx == nullptr || fixed) return;
    const auto write_dx = [=](const auto& centre) {
      vectorized([=] {
        map_channels(span, dx, [=](size_t i, size_t k) {
          const T lowered = static_cast<T>(centre.dy[k] * centre.share);
          const T tilted = static_cast<T>(centre.dy_normal[k] * centre.share);
          return (dy[i] - lowered - normal(i, k) * tilted) * (inv_std[k] * scale[k]);
        });
      });
    };
    const size_t count = span.outer * span.inner;
    if (is_over_ranks(c)) return write_dx(centre_of_ranks(c, count, dbias, dscale));
    write_dx(Centre<T>{dbias, dscale, 1 / static_cast<T>(count)});
  });
}

std::vector<Var> grad(const GradCtx& c) {
  for (size_t i = 1; i < c.dout.size(); ++i)
    check<ConfigError>(!c.dout[i], "batch_norm: only y has a gradient, result ", i, " has none");
  if (!c.needs[0] && !c.needs[1] && !c.needs[2]) return std::vector<Var>(c.in.size());
  Attrs attrs{{"is_test", c.attrs.integer("is_test")}, {"x_grad", int64_t{c.needs[0]}}};
  if (c.attrs.integer("sync") != 0) attrs.set("sync", int64_t{1});
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
          example(random_tensor({5, 4}), {{"sync", int64_t{1}}}),
          example(random_tensor({5, 4}), {{"is_test", int64_t{1}}}),
          example(random_tensor({2, 3, 2, 2}), {{"is_test", int64_t{1}}})};
}

}  // namespace

std::vector<OpDef> batch_norm() {
  return {{.name = "batch_norm",
           .inputs = 5,
           .trait = OpTrait::inplace,
           .rank_numbers = rank_numbers,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "batch_norm_grad",
           .inputs = 5,
           .rank_numbers = grad_rank_numbers,
           .infer = infer_grad,
           .run = run_grad}};
}

}  // namespace argosy::ops

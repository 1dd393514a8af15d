// layer_norm(x, scale, bias) {begin_norm_axis=1, epsilon=1e-5} -> (y, saved_mean, saved_inv_std):
// normalizes each row of x, the axes from begin_norm_axis on, to mean 0 and variance 1, then
// multiplies by scale and adds bias, which are 1-D of a row's size.
#include <array>
#include <cmath>

#include "argosy/ops/value_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  expect_float(c, 0);
  const Shape& x = c.in[0].shape;
  const int64_t begin = c.attrs.integer("begin_norm_axis", 1);
  check<ConfigError>(begin >= 1 && begin < x.rank(), "begin_norm_axis must be 1 or more and below ",
                     x.rank(), ", got ", begin);
  const auto split = x.dims().subspan(0, static_cast<size_t>(begin));
  const int64_t size = Shape(x.dims().subspan(split.size())).numel();
  for (size_t i = 1; i < c.in.size(); ++i) {
    expect_same_type(c, 0, i);
    check<ConfigError>(fits(c.in[i].shape, Shape{size}), i == 1 ? "scale" : "bias", " must be ",
                       Shape{size}, ", got ", c.in[i].shape);
  }
  const VarType row{Shape(split), c.in[0].dtype};
  c.out = {c.in[0], row, row};
}

void run(const RunCtx& c) {
  const auto rows = static_cast<size_t>(c.out(1).numel()), n = static_cast<size_t>(c.in(1).numel());
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *x = c.in(0).as<T>().data(), *scale = c.in(1).as<T>().data(),
            *bias = c.in(2).as<T>().data();
    T *y = c.out(0).as<T>().data(), *means = c.out(1).as<T>().data(),
      *inv_stds = c.out(2).as<T>().data();
    const auto epsilon = static_cast<T>(c.attrs.real("epsilon", 1e-5));
    const T count = static_cast<T>(std::max<size_t>(n, 1));
    vectorized([=] {
      for (size_t r = 0; r < rows; ++r) {
        const T* xr = x + r * n;
        const T mean = math::sum(xr, n) / count;
        const T squares = sum_of<T>(n, [=](size_t i) { return (xr[i] - mean) * (xr[i] - mean); });
        const T inv_std = 1 / std::sqrt(squares / count + epsilon);
        T* yr = y + r * n;
        for (size_t i = 0; i < n; ++i) yr[i] = (xr[i] - mean) * inv_std * scale[i] + bias[i];
        means[r] = mean;
        inv_stds[r] = inv_std;
      }
    });
  });
}

void infer_grad(const InferCtx& c) {
  c.out = {c.in[1], c.in[1]};
  if (c.attrs.integer("x_grad") != 0) c.out.push_back(c.in[0]);
}

/// dx of one row; it holds dy * scale on the way.
template <class T>
void grad_row(const T* x, const T* scale, const T* dy, T mean, T inv_std, T* dx, size_t n) {
  for (size_t i = 0; i < n; ++i) dx[i] = dy[i] * scale[i];
  const auto normal = [=](size_t i) { return (x[i] - mean) * inv_std; };
  const T shift = math::sum(dx, n) / static_cast<T>(n);
  const T slope = sum_of<T>(n, [=](size_t i) { return dx[i] * normal(i); }) / static_cast<T>(n);
  for (size_t i = 0; i < n; ++i) dx[i] = (dx[i] - shift - normal(i) * slope) * inv_std;
}

// (x, scale, mean, inv_std, dy) -> (dscale, dbias), with x_grad=1 also dx
void run_grad(const RunCtx& c) {
  const auto rows = static_cast<size_t>(c.in(2).numel()), n = static_cast<size_t>(c.in(1).numel());
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *x = c.in(0).as<T>().data(), *scale = c.in(1).as<T>().data(),
            *mean = c.in(2).as<T>().data(), *inv_std = c.in(3).as<T>().data(),
            *dy = c.in(4).as<T>().data();
    T *dscale = c.out(0).as<T>().data(), *dbias = c.out(1).as<T>().data();
    T* dx = c.outputs.size() > 2 ? c.out(2).as<T>().data() : nullptr;
    vectorized([=] {
      for (size_t i = 0; i < n; ++i) dscale[i] = dbias[i] = 0;
      for (size_t r = 0; r < rows; ++r) {
        const T *xr = x + r * n, *dyr = dy + r * n;
        const T m = mean[r], s = inv_std[r];
        for (size_t i = 0; i < n; ++i) dscale[i] += dyr[i] * ((xr[i] - m) * s);
        for (size_t i = 0; i < n; ++i) dbias[i] += dyr[i];
        if (dx != nullptr) grad_row(xr, scale, dyr, m, s, dx + r * n, n);
      }
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  for (size_t i = 1; i < c.dout.size(); ++i)
    check<ConfigError>(!c.dout[i], "layer_norm: only y has a gradient, result ", i, " has none");
  const std::array in{c.in[0], c.in[1], c.out[1], c.out[2], c.dout[0]};
  const auto out = c.g.apply_all("layer_norm_grad", in, {{"x_grad", int64_t{c.needs[0]}}});
  return {c.needs[0] ? out[2] : Var{}, out[0], out[1]};
}

std::vector<OpExample> examples() {
  const auto example = [](const Tensor& x, int64_t size, Attrs attrs) {
    return OpExample{.in = {x, random_tensor({size}, 0.5, 1.5, 2), random_tensor({size}, 3)},
                     .attrs = std::move(attrs)};
  };
  const VarType x{{3, 4}, DType::f64}, row{{4}, DType::f64};
  OpExample first = example(random_tensor({3, 4}), 4, {});
  first.refused = {{{{4}, DType::f64}, row, row},
                   {x, {{3}, DType::f64}, row},
                   {x, row, {{1, 4}, DType::f64}},
                   {x, row, {{4}, DType::f32}}};
  return {
      first, example(random_tensor({3, 2, 4}), 8, {}),
      example(random_tensor({3, 2, 20}), 20, {{"begin_norm_axis", int64_t{2}}, {"epsilon", 0.1}})};
}

}  // namespace

std::vector<OpDef> layer_norm() {
  return {{.name = "layer_norm",
           .inputs = 3,
           .trait = OpTrait::inplace,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "layer_norm_grad", .inputs = 5, .infer = infer_grad, .run = run_grad}};
}

}  // namespace argosy::ops

// linear(x, w[, b]) = activation(x w + b): x [..., k], w [k, n], b [n]. One op, so that the bias
// and the activation ride on the product. activation: none (default), relu, sigmoid or tanh.
#include "argosy/ops/op_support.h"
#include "argosy/tensor/gemm.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  check<ConfigError>(c.in.size() == 2 || c.in.size() == 3, "takes x, w and perhaps a bias, got ",
                     c.in.size(), " inputs");
  expect_float(c, 0);
  for (size_t i = 1; i < c.in.size(); ++i) expect_same_type(c, 0, i);
  expect_rank(c, 1, 2);
  const Shape &x = c.in[0].shape, &w = c.in[1].shape;
  check<ConfigError>(x.rank() >= 1 && dims_agree(x[-1], w[0]), "x ends in ", x.rank() ? x[-1] : 0,
                     " features but w has ", w[0], " rows");
  if (c.in.size() == 3)
    check<ConfigError>(fits(c.in[2].shape, Shape{w[1]}), "the bias must be ", Shape{w[1]}, ", got ",
                       c.in[2].shape);
  const std::string& activation = c.attrs.text("activation");
  check<ConfigError>(
      activation.empty() || activation == "relu" || activation == "sigmoid" || activation == "tanh",
      "activation '", activation, "', expected relu, sigmoid or tanh");
  Shape out = x;
  out[-1] = w[1];
  c.out = {{out, c.in[0].dtype}};
}

template <class T, class F>
void map_in_place(std::span<T> values, F f) {
  vectorized([y = values.data(), n = values.size(), f] {
    for (size_t i = 0; i < n; ++i) y[i] = f(y[i]);
  });
}

void run(const RunCtx& c) {
  const std::string& activation = c.attrs.text("activation");
  const Shape& w = c.in(1).shape();
  const GemmSpec spec{.m = w[0] > 0 ? c.in(0).numel() / w[0] : 0,
                      .n = w[1],
                      .k = w[0],
                      .bias = c.inputs.size() == 3,
                      .relu = activation == "relu"};
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto y = c.out(0).as<T>();
    gemm(spec, c.in(0).as<T>().data(), c.in(1).as<T>().data(),
         spec.bias ? c.in(2).as<T>().data() : nullptr, y.data());
    if (activation == "sigmoid") map_in_place(y, [](T x) { return math::sigmoid(x); });
    if (activation == "tanh") map_in_place(y, [](T x) { return math::tanh(x); });
  });
}

/// dz = f(y, dy) and db = the sum of dz over rows, in one pass.
template <class T, class F>
void grad_rows(const RunCtx& c, F f) {
  const T *y = c.in(0).as<T>().data(), *dy = c.in(1).as<T>().data();
  T *dz = c.out(0).as<T>().data(), *db = c.out(1).as<T>().data();
  const auto n = static_cast<size_t>(c.out(1).numel());
  const size_t rows = n == 0 ? 0 : static_cast<size_t>(c.in(0).numel()) / n;
  vectorized([=] {
    for (size_t i = 0; i < n; ++i) db[i] = 0;
    for (size_t row = 0; row < rows; ++row) {
      const T *yr = y + row * n, *dyr = dy + row * n;
      T* dzr = dz + row * n;
      for (size_t i = 0; i < n; ++i) {
        const T d = f(yr[i], dyr[i]);
        dzr[i] = d;
        db[i] += d;
      }
    }
  });
}

void infer_activation_bias_grad(const InferCtx& c) {
  same_float(c);
  c.out.push_back({Shape{c.in[0].shape[-1]}, c.in[0].dtype});
}

void run_activation_bias_grad(const RunCtx& c) {  // (y, dy) -> (dz, db)
  const std::string& activation = c.attrs.text("activation");
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (activation == "relu") return grad_rows<T>(c, [](T y, T dy) { return y > 0 ? dy : T{0}; });
    if (activation == "sigmoid") return grad_rows<T>(c, [](T y, T dy) { return dy * y * (1 - y); });
    grad_rows<T>(c, [](T y, T dy) { return dy * (1 - y * y); });
  });
}

void infer_bias_grad(const InferCtx& c) {
  expect_float(c, 0);
  c.out = {{Shape{c.in[0].shape[-1]}, c.in[0].dtype}};
}

void run_bias_grad(const RunCtx& c) {  // dy -> db
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* dy = c.in(0).as<T>().data();
    T* db = c.out(0).as<T>().data();
    const auto n = static_cast<size_t>(c.out(0).numel());
    const size_t rows = n == 0 ? 0 : static_cast<size_t>(c.in(0).numel()) / n;
    vectorized([=] {
      for (size_t i = 0; i < n; ++i) db[i] = 0;
      for (size_t row = 0; row < rows; ++row)
        for (size_t i = 0; i < n; ++i) db[i] += dy[row * n + i];
    });
  });
}

Var as_matrix(Var x) {
  if (x.shape().rank() == 2) return x;
  return x.g->apply("reshape", {x}, {{"shape", std::vector<int64_t>{-1, x.shape()[-1]}}});
}

std::vector<Var> grad(const GradCtx& c) {
  const std::string& activation = c.attrs.text("activation");
  const bool wants_bias = c.in.size() == 3 && c.needs[2];
  Var dz = c.dout[0], db, dx, dw;
  if (!activation.empty() && wants_bias) {
    const auto both = c.g.apply_all("activation_bias_grad", std::array{c.out[0], dz},
                                    {{"activation", activation}});
    dz = both[0];
    db = both[1];
  } else if (!activation.empty()) {
    dz = c.g.apply(activation + "_grad", {c.out[0], dz});
  } else if (wants_bias) {
    db = c.g.apply("bias_grad", {dz});
  }
  if (c.needs[1])
    dw = c.g.apply("matmul", {as_matrix(c.in[0]), as_matrix(dz)}, {{"trans_a", int64_t{1}}});
  if (c.needs[0]) dx = c.g.apply("matmul", {dz, c.in[1]}, {{"trans_b", int64_t{1}}});
  return {dx, dw, db};
}

std::vector<OpExample> examples() {
  const Tensor x = random_tensor({3, 4}), w = random_tensor({4, 2}, 2), b = random_tensor({2}, 3);
  const std::vector<std::vector<VarType>> refused = {
      {{{3, 4}, DType::f64}, {{5, 2}, DType::f64}, {{2}, DType::f64}},
      {{{3, 4}, DType::f64}, {{4, 2}, DType::f64}, {{3}, DType::f64}},
      {{{3, 4}, DType::f64}, {{4, 2}, DType::f32}}};
  return {{.in = {x, w, b}, .refused = refused},
          {.in = {x, w}},
          {.in = {random_tensor({2, 3, 4}), w, b}},
          {.in = {x, w, b}, .attrs = {{"activation", "relu"}}},
          {.in = {x, w, b}, .attrs = {{"activation", "tanh"}}},
          {.in = {x, w, b}, .attrs = {{"activation", "sigmoid"}}},
          {.in = {x, w}, .attrs = {{"activation", "sigmoid"}}}};
}

}  // namespace

std::vector<OpDef> linear() {
  return {{.name = "linear",
           .inputs = -1,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "activation_bias_grad",
           .inputs = 2,
           .trait = OpTrait::inplace,
           .infer = infer_activation_bias_grad,
           .run = run_activation_bias_grad},
          {.name = "bias_grad", .infer = infer_bias_grad, .run = run_bias_grad}};
}

}  // namespace argosy::ops

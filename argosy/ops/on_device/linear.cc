#include "argosy/device/gemm.h"
#include "argosy/device/sums.h"
#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

enum class Activation : uint8_t { none, relu, sigmoid, tanh };

Activation activation_of(const Attrs& attrs) {
  const std::string& name = attrs.text("activation");
  if (name == "relu") return Activation::relu;
  if (name == "sigmoid") return Activation::sigmoid;
  return name == "tanh" ? Activation::tanh : Activation::none;
}

/// y = activation(y + bias), element i of a row with the bias's element i.
struct Finish {
  Activation activation;
  const float* bias;  // null: none
  size_t width;
  float* y;
  ARGOSY_DEVICE void operator()(size_t i) const {
    const float z = bias != nullptr ? y[i] + bias[i % width] : y[i];
    switch (activation) {
      case Activation::none:
        y[i] = z;
        return;
      case Activation::relu:
        y[i] = z > 0 ? z : 0;
        return;
      case Activation::sigmoid:
        y[i] = math::sigmoid(z);
        return;
      case Activation::tanh:
        y[i] = math::tanh(z);
        return;
    }
  }
};

void run(const RunCtx& c, Stream& stream) {
  const Shape& w = c.in(1).shape();
  const GemmSpec spec{.m = w[0] > 0 ? c.in(0).numel() / w[0] : 0, .n = w[1], .k = w[0]};
  float* y = floats(c.out(0));
  device::gemm(stream, spec, floats(c.in(0)), floats(c.in(1)), y);
  const Activation activation = activation_of(c.attrs);
  const float* bias = c.inputs.size() == 3 ? floats(c.in(2)) : nullptr;
  if (bias == nullptr && activation == Activation::none) return;
  for_each_index(stream, count(c.out(0)), Finish{activation, bias, static_cast<size_t>(w[1]), y});
}

struct ActivationGrad {
  Activation activation;
  const float *y, *dy;
  float* dz;
  ARGOSY_DEVICE void operator()(size_t i) const {
    const float at = y[i], d = dy[i];
    dz[i] = activation == Activation::relu      ? (at > 0 ? d : 0)
            : activation == Activation::sigmoid ? d * at * (1 - at)
                                                : d * (1 - at * at);
  }
};

struct ColumnTerm {
  const float* x;
  size_t width;
  ARGOSY_DEVICE float operator()(size_t column, size_t row) const {
    return x[row * width + column];
  }
};
struct StoreTotal {
  float* y;
  ARGOSY_DEVICE void operator()(size_t column, float total) const { y[column] = total; }
};

/// db = the sum of dz over rows.
void sum_rows(Stream& stream, const Tensor& dz, Tensor& db) {
  const size_t width = count(db);
  if (width == 0) return;
  device::sums<float>(stream, width, count(dz) / width, ColumnTerm{floats(dz), width},
                      StoreTotal{floats(db)});
}

void run_activation_bias_grad(const RunCtx& c, Stream& stream) {  // (y, dy) -> (dz, db)
  for_each_index(
      stream, count(c.out(0)),
      ActivationGrad{activation_of(c.attrs), floats(c.in(0)), floats(c.in(1)), floats(c.out(0))});
  sum_rows(stream, c.out(0), c.out(1));
}

void run_bias_grad(const RunCtx& c, Stream& stream) { sum_rows(stream, c.in(0), c.out(0)); }

}  // namespace

std::vector<DeviceKernel> linear() {
  return {{"linear", run},
          {"activation_bias_grad", run_activation_bias_grad},
          {"bias_grad", run_bias_grad}};
}

}  // namespace argosy::ops::on_device

#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

struct Tanh {
  ARGOSY_DEVICE float operator()(float x) const { return math::tanh(x); }
};
struct TanhGrad {
  ARGOSY_DEVICE float operator()(float y, float dy) const { return dy * (1 - y * y); }
};

}  // namespace

std::vector<DeviceKernel> tanh() { return {{"tanh", map<Tanh>}, {"tanh_grad", map<TanhGrad>}}; }

}  // namespace argosy::ops::on_device

#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

struct Relu {
  ARGOSY_DEVICE float operator()(float x) const { return x > 0 ? x : 0; }
};
struct ReluGrad {
  ARGOSY_DEVICE float operator()(float y, float dy) const { return y > 0 ? dy : 0; }
};

}  // namespace

std::vector<DeviceKernel> relu() { return {{"relu", map<Relu>}, {"relu_grad", map<ReluGrad>}}; }

}  // namespace argosy::ops::on_device

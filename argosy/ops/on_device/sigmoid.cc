#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

struct Sigmoid {
  ARGOSY_DEVICE float operator()(float x) const { return math::sigmoid(x); }
};
struct SigmoidGrad {
  ARGOSY_DEVICE float operator()(float y, float dy) const { return dy * y * (1 - y); }
};

}  // namespace

std::vector<DeviceKernel> sigmoid() {
  return {{"sigmoid", map<Sigmoid>}, {"sigmoid_grad", map<SigmoidGrad>}};
}

}  // namespace argosy::ops::on_device

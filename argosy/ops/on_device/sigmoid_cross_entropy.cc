#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

struct Loss {
  ARGOSY_DEVICE float operator()(float x, float label) const {
    const float positive = x > 0 ? x : 0, size = x > 0 ? x : -x;
    return positive - x * label + math::log1p(math::exp(-size));
  }
};
struct LossGrad {
  ARGOSY_DEVICE float operator()(float x, float label, float d) const {
    return (math::sigmoid(x) - label) * d;
  }
};

}  // namespace

std::vector<DeviceKernel> sigmoid_cross_entropy() {
  return {{"sigmoid_cross_entropy", map<Loss>}, {"sigmoid_cross_entropy_grad", map<LossGrad>}};
}

}  // namespace argosy::ops::on_device

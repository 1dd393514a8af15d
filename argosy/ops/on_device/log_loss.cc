#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

/// A probability's loss depends on a small number that keeps logarithms finite.
struct WithEpsilon {
  float e;
  explicit WithEpsilon(const Attrs& attrs) : e(static_cast<float>(attrs.real("epsilon", 1e-4))) {}
};
struct Loss : WithEpsilon {
  using WithEpsilon::WithEpsilon;
  ARGOSY_DEVICE float operator()(float p, float label) const {
    return -label * math::log(p + e) - (1 - label) * math::log(1 - p + e);
  }
};
struct LossGrad : WithEpsilon {
  using WithEpsilon::WithEpsilon;
  ARGOSY_DEVICE float operator()(float p, float label, float d) const {
    return ((1 - label) / (1 - p + e) - label / (p + e)) * d;
  }
};
struct LabelGrad : WithEpsilon {
  using WithEpsilon::WithEpsilon;
  ARGOSY_DEVICE float operator()(float p, float d) const {
    return (math::log(1 - p + e) - math::log(p + e)) * d;
  }
};

}  // namespace

std::vector<DeviceKernel> log_loss() {
  return {{"log_loss", map<Loss>},
          {"log_loss_grad", map<LossGrad>},
          {"log_loss_label_grad", map<LabelGrad>}};
}

}  // namespace argosy::ops::on_device

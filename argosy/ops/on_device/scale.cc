#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

struct Scale {
  float scale, bias;
  bool bias_last;
  explicit Scale(const Attrs& attrs)
      : scale(static_cast<float>(attrs.real("scale", 1.0))),
        bias(static_cast<float>(attrs.real("bias", 0.0))),
        bias_last(attrs.integer("bias_after_scale", 1) != 0) {}
  ARGOSY_DEVICE float operator()(float x) const {
    return bias_last ? scale * x + bias : scale * (x + bias);
  }
};

}  // namespace

std::vector<DeviceKernel> scale() { return {{"scale", map<Scale>}}; }

}  // namespace argosy::ops::on_device

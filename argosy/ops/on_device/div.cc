#include "argosy/ops/on_device/broadcast_support.h"

namespace argosy::ops::on_device {
namespace {

struct Div {
  ARGOSY_DEVICE float operator()(float a, float b) const { return a / b; }
};

}  // namespace

std::vector<DeviceKernel> div() { return {{"div", zip<float, float, Div>}}; }

}  // namespace argosy::ops::on_device

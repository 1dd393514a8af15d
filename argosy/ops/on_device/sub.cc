#include "argosy/ops/on_device/broadcast_support.h"

namespace argosy::ops::on_device {
namespace {

struct Sub {
  template <class T>
  ARGOSY_DEVICE T operator()(T a, T b) const {
    return a - b;
  }
};

}  // namespace

std::vector<DeviceKernel> sub() { return {{"sub", zip_numbers<Sub>}}; }

}  // namespace argosy::ops::on_device

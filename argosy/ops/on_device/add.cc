#include "argosy/ops/on_device/broadcast_support.h"

namespace argosy::ops::on_device {
namespace {

struct Add {
  template <class T>
  ARGOSY_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace

std::vector<DeviceKernel> add() { return {{"add", zip_numbers<Add>}}; }

}  // namespace argosy::ops::on_device

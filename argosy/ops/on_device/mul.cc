#include "argosy/ops/on_device/broadcast_support.h"

namespace argosy::ops::on_device {
namespace {

struct Mul {
  template <class T>
  ARGOSY_DEVICE T operator()(T a, T b) const {
    return a * b;
  }
};

}  // namespace

std::vector<DeviceKernel> mul() { return {{"mul", zip_numbers<Mul>}}; }

}  // namespace argosy::ops::on_device

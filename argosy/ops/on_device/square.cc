#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

struct Square {
  ARGOSY_DEVICE float operator()(float x) const { return x * x; }
};
struct SquareGrad {
  ARGOSY_DEVICE float operator()(float x, float dy) const { return 2 * x * dy; }
};

}  // namespace

std::vector<DeviceKernel> square() {
  return {{"square", map<Square>}, {"square_grad", map<SquareGrad>}};
}

}  // namespace argosy::ops::on_device

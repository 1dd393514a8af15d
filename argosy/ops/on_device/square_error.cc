#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

struct SquareError {
  ARGOSY_DEVICE float operator()(float x, float y) const { return (x - y) * (x - y); }
};
struct SquareErrorGrad {
  ARGOSY_DEVICE float operator()(float x, float y, float d) const { return 2 * (x - y) * d; }
};

}  // namespace

std::vector<DeviceKernel> square_error() {
  return {{"square_error", map<SquareError>}, {"square_error_grad", map<SquareErrorGrad>}};
}

}  // namespace argosy::ops::on_device

#include "argosy/ops/on_device/broadcast_support.h"

namespace argosy::ops::on_device {
namespace {

struct Equal {
  template <class T>
  ARGOSY_DEVICE bool operator()(T a, T b) const {
    return a == b;
  }
};

void equal(const RunCtx& c, Stream& stream) {
  by_type(c.in(0).dtype(), [&](auto zero) { zip<decltype(zero), bool, Equal>(c, stream); });
}

}  // namespace

std::vector<DeviceKernel> compare() { return {{"equal", equal}}; }

}  // namespace argosy::ops::on_device

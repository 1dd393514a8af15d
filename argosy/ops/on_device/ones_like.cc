#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

template <int kValue>
struct Fill {
  float* y;
  ARGOSY_DEVICE void operator()(size_t i) const { y[i] = kValue; }
};

template <int kValue>
void fill(const RunCtx& c, Stream& stream) {
  for_each_index(stream, count(c.out(0)), Fill<kValue>{floats(c.out(0))});
}

}  // namespace

std::vector<DeviceKernel> ones_like() { return {{"ones_like", fill<1>}, {"zeros_like", fill<0>}}; }

}  // namespace argosy::ops::on_device

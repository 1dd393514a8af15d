#include "argosy/ops/on_device/reduce_support.h"

namespace argosy::ops::on_device {
namespace {

void run(const RunCtx& c, Stream& stream) {
  if (c.out(0).numel() == 0) return;
  // The mean of nothing is 0, as on the processor.
  const auto reduced = std::max<int64_t>(c.in(0).numel() / c.out(0).numel(), 1);
  sum_to_kept<float>(stream, c.in(0), kept_shape(c.in(0).shape(), c.attrs), c.out(0),
                     static_cast<float>(reduced));
}

}  // namespace

std::vector<DeviceKernel> mean() { return {{"mean", run}}; }

}  // namespace argosy::ops::on_device

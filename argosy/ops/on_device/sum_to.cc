#include "argosy/ops/on_device/reduce_support.h"

namespace argosy::ops::on_device {
namespace {

void run(const RunCtx& c, Stream& stream) {  // (x, like) -> x summed to the shape of like
  const Tensor& x = c.in(0);
  if (x.numel() == c.out(0).numel())
    return stream.copy(c.out(0).data(), x.data(), c.out(0).bytes());
  sum_to_kept<float>(stream, x, padded(c.in(1).shape(), x.shape().rank()), c.out(0), 1.0F);
}

}  // namespace

std::vector<DeviceKernel> sum_to() { return {{"sum_to", run}}; }

}  // namespace argosy::ops::on_device

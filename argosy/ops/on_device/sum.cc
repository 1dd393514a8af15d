#include "argosy/ops/on_device/reduce_support.h"

namespace argosy::ops::on_device {
namespace {

void run(const RunCtx& c, Stream& stream) {
  const Shape kept = kept_shape(c.in(0).shape(), c.attrs);
  if (c.in(0).dtype() == DType::f32)
    return sum_to_kept<float>(stream, c.in(0), kept, c.out(0), 1.0F);
  by_integer(c.in(0).dtype(), [&](auto zero) {
    sum_to_kept<decltype(zero)>(stream, c.in(0), kept, c.out(0), decltype(zero){1});
  });
}

}  // namespace

std::vector<DeviceKernel> sum() { return {{"sum", run}}; }

}  // namespace argosy::ops::on_device

#include "argosy/ops/on_device/copy_support.h"

namespace argosy::ops::on_device {
namespace {

void run(const RunCtx& c, Stream& stream) {
  const Tensor& x = c.in(0);
  if (x.numel() == 0) return;
  const int axis = x.shape().axis(c.attrs.integer("axis"));
  const AxisRows whole(x, axis);
  const std::byte* from = x.data();
  for (Tensor* part : c.outputs) {
    const size_t bytes = AxisRows(*part, axis).bytes;
    copy_rows(stream, {from, part->data(), whole.bytes, bytes, bytes, whole.rows},
              size_of(x.dtype()));
    from += bytes;
  }
}

}  // namespace

std::vector<DeviceKernel> split() { return {{"split", run}}; }

}  // namespace argosy::ops::on_device

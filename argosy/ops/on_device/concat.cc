#include "argosy/ops/on_device/copy_support.h"

namespace argosy::ops::on_device {
namespace {

void run(const RunCtx& c, Stream& stream) {
  Tensor& y = c.out(0);
  if (y.numel() == 0) return;
  const int axis = y.shape().axis(c.attrs.integer("axis"));
  const AxisRows whole(y, axis);
  std::byte* to = y.data();
  for (const Tensor* x : c.inputs) {
    const size_t bytes = AxisRows(*x, axis).bytes;
    copy_rows(stream, {x->data(), to, bytes, whole.bytes, bytes, whole.rows}, size_of(y.dtype()));
    to += bytes;
  }
}

/// (dout, a, b, ..., x) -> dx, where a, b, ... precede x in the result.
void run_part(const RunCtx& c, Stream& stream) {
  Tensor& dx = c.out(0);
  if (dx.numel() == 0) return;
  const int axis = dx.shape().axis(c.attrs.integer("axis"));
  const std::byte* from = c.in(0).data();
  for (size_t i = 1; i + 1 < c.inputs.size(); ++i) from += AxisRows(c.in(i), axis).bytes;
  const AxisRows part(dx, axis);
  copy_rows(stream,
            {from, dx.data(), AxisRows(c.in(0), axis).bytes, part.bytes, part.bytes, part.rows},
            size_of(dx.dtype()));
}

}  // namespace

std::vector<DeviceKernel> concat() { return {{"concat", run}, {"concat_part", run_part}}; }

}  // namespace argosy::ops::on_device

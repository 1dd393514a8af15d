#include "argosy/ops/on_device/reduce_support.h"

namespace argosy::ops::on_device {
namespace {

struct Spread {
  const float* d;
  float* dx;
  float by;
  Strides to_d;
  ARGOSY_DEVICE void operator()(size_t i) const { dx[i] = d[to_d(i)] / by; }
};

void run(const RunCtx& c, Stream& stream) {  // (d, x) -> dx
  const size_t n = count(c.out(0));
  if (n == 0) return;
  const size_t of_each = n / count(c.in(0));
  const float by = c.attrs.integer("mean") != 0 ? static_cast<float>(of_each) : 1.0F;
  const Shape& shape = c.out(0).shape();
  for_each_index(
      stream, n,
      Spread{floats(c.in(0)), floats(c.out(0)), by, Strides(kept_shape(shape, c.attrs), shape)});
}

}  // namespace

std::vector<DeviceKernel> spread() { return {{"spread", run}}; }

}  // namespace argosy::ops::on_device

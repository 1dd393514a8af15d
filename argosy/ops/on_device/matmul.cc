#include "argosy/device/gemm.h"
#include "argosy/ops/on_device/kernel.h"

namespace argosy::ops::on_device {
namespace {

void run(const RunCtx& c, device::Stream& stream) {
  const Shape &a = c.in(0).shape(), &b = c.in(1).shape();
  const bool ta = c.attrs.integer("trans_a") != 0, tb = c.attrs.integer("trans_b") != 0;
  int64_t batches = 1;
  for (int i = 0; i < a.rank() - 2; ++i) batches *= a[i];
  GemmSpec spec{.m = a[ta ? -1 : -2],
                .n = b[tb ? -2 : -1],
                .k = a[ta ? -2 : -1],
                .trans_a = ta,
                .trans_b = tb};
  if (b.rank() == 2 && !ta) {  // one tall product
    spec.m *= batches;
    batches = 1;
  }
  const float *pa = c.in(0).as<float>().data(), *pb = c.in(1).as<float>().data();
  float* out = c.out(0).as<float>().data();
  for (int64_t i = 0; i < batches; ++i)
    device::gemm(stream, spec, pa + i * spec.m * spec.k,
                 pb + (b.rank() > 2 ? i * spec.k * spec.n : 0), out + i * spec.m * spec.n);
}

}  // namespace

std::vector<DeviceKernel> matmul() { return {{"matmul", run}}; }

}  // namespace argosy::ops::on_device

#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

double p_of(const Attrs& attrs) { return attrs.real("p", 0.5); }
bool is_test(const Attrs& attrs) { return attrs.integer("is_test") != 0; }

/// The factor of elements that are kept, as in ops/dropout.cc.
float factor_of(const Attrs& attrs) {
  const double p = p_of(attrs);
  const bool upscales = attrs.text("mode") != "downgrade_in_infer";
  if (upscales == is_test(attrs)) return 1;
  if (is_test(attrs)) return static_cast<float>(1.0 - p);
  return static_cast<float>(p < 1.0 ? 1.0 / (1.0 - p) : 0.0);
}

struct Drop {
  RandomStream random;
  double p;
  bool keeps_all;
  float factor;
  const float* x;
  float* y;
  uint8_t* mask;
  ARGOSY_DEVICE void operator()(size_t i) const {
    const bool kept = keeps_all || random.uniform(i) >= p;
    mask[i] = kept ? 1 : 0;
    y[i] = kept ? x[i] * factor : 0;
  }
};

void run(const RunCtx& c, Stream& stream) {
  for_each_index(stream, count(c.out(0)),
                 Drop{c.random(), p_of(c.attrs), is_test(c.attrs), factor_of(c.attrs),
                      floats(c.in(0)), floats(c.out(0)), c.out(1).as<uint8_t>().data()});
}

struct DropGrad {
  float factor;
  const float* dy;
  const uint8_t* mask;
  float* dx;
  ARGOSY_DEVICE void operator()(size_t i) const { dx[i] = mask[i] != 0 ? dy[i] * factor : 0; }
};

void run_grad(const RunCtx& c, Stream& stream) {  // (dy, mask) -> dx
  for_each_index(stream, count(c.out(0)),
                 DropGrad{factor_of(c.attrs), floats(c.in(0)), c.in(1).as<uint8_t>().data(),
                          floats(c.out(0))});
}

}  // namespace

std::vector<DeviceKernel> dropout() { return {{"dropout", run}, {"dropout_grad", run_grad}}; }

}  // namespace argosy::ops::on_device

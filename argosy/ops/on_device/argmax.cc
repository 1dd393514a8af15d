#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

template <class T>
struct Best {
  const T* x;
  int64_t* out;
  size_t length, inner;
  ARGOSY_DEVICE void operator()(size_t at) const {
    const T* first = x + at / inner * length * inner + at % inner;
    size_t best = 0;
    for (size_t k = 1; k < length; ++k)
      if (first[k * inner] > first[best * inner]) best = k;
    out[at] = static_cast<int64_t>(best);
  }
};

void run(const RunCtx& c, Stream& stream) {
  const Shape& shape = c.in(0).shape();
  const int axis = shape.axis(c.attrs.integer("axis", -1));
  size_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= static_cast<size_t>(shape[i]);
  by_type(c.in(0).dtype(), [&](auto kind) {
    using T = decltype(kind);
    for_each_index(stream, count(c.out(0)),
                   Best<T>{c.in(0).as<T>().data(), c.out(0).as<int64_t>().data(),
                           static_cast<size_t>(shape[axis]), inner});
  });
}

}  // namespace

std::vector<DeviceKernel> argmax() { return {{"argmax", run}}; }

}  // namespace argosy::ops::on_device

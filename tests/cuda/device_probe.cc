// Tries the device layer alone: a loop, a sort and a product. Compiled by make cuda; without a
// device it says so and succeeds.
#include <cstdio>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/device/devices.h"
#include "argosy/device/gemm.h"
#include "argosy/device/sort.h"

using namespace argosy;

namespace {

struct Square {
  float* x;
  ARGOSY_DEVICE void operator()(size_t i) const { x[i] = static_cast<float>(i * i % 7); }
};

template <class T>
std::vector<T> fetched(device::Stream& stream, const T* from, size_t n) {
  std::vector<T> values(n);
  stream.download(values.data(), from, n * sizeof(T));
  stream.wait();
  return values;
}

void try_device(int number) {
  device::Stream stream(number);
  device::Buffer memory, product;
  auto* x = memory.room_for<float>(16);
  device::for_each_index(stream, 16, Square{x});
  auto* y = product.room_for<float>(16);
  device::gemm(stream, {.m = 4, .n = 4, .k = 4}, x, x, y);
  device::sort_by_key(stream, x, y, 16);
  const std::vector<float> sorted = fetched(stream, x, 16);
  for (size_t i = 1; i < sorted.size(); ++i)
    check<Error>(sorted[i - 1] <= sorted[i], "a sort on gpu:", number, " is wrong");
  check<Error>(device::sum(stream, x, 16) > 0, "a sum on gpu:", number, " is wrong");
}

}  // namespace

int main() {
  try {
    const device::Devices devices = device::devices("");
    for (int i = 0; i < devices.count; ++i) try_device(i);
    std::printf("device_probe: %d devices work%s\n", devices.count,
                devices.count == 0 ? (": " + device::why_none()).c_str() : "");
    return 0;
  } catch (const Error& e) {
    std::fprintf(stderr, "device_probe: %s\n", e.what());
    return 1;
  }
}

#include "argosy/ops/slice_support.h"

#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

/// Maps an element of the slice to its position in the whole.
struct Place {
  std::array<size_t, Shape::kMaxRank> sizes{}, steps{};
  size_t first = 0;
  int axes;

  Place(const Shape& whole, const Attrs& attrs) : axes(whole.rank()) {
    const Ranges ranges = ranges_of(whole, attrs);
    size_t step = 1;
    for (int i = axes - 1; i >= 0; --i) {
      const auto axis = static_cast<size_t>(i);
      sizes[axis] = static_cast<size_t>(ranges[axis].size);
      steps[axis] = step;
      first += static_cast<size_t>(ranges[axis].start) * step;
      step *= static_cast<size_t>(whole[i]);
    }
  }

  ARGOSY_DEVICE size_t operator()(size_t at) const {
    size_t place = first;
    for (int i = axes - 1; i >= 0; --i) {
      place += at % sizes[static_cast<size_t>(i)] * steps[static_cast<size_t>(i)];
      at /= sizes[static_cast<size_t>(i)];
    }
    return place;
  }
};

template <class T>
struct Take {
  const T* whole;
  T* slice;
  Place place;
  ARGOSY_DEVICE void operator()(size_t i) const { slice[i] = whole[place(i)]; }
};

template <class T>
struct Put {
  const T* slice;
  T* whole;
  Place place;
  ARGOSY_DEVICE void operator()(size_t i) const { whole[place(i)] = slice[i]; }
};

void run(const RunCtx& c, Stream& stream) {
  by_type(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_each_index(
        stream, count(c.out(0)),
        Take<T>{c.in(0).as<T>().data(), c.out(0).as<T>().data(), Place(c.in(0).shape(), c.attrs)});
  });
}

void run_grad(const RunCtx& c, Stream& stream) {  // (x, dout) -> dx
  stream.zero(c.out(0).data(), c.out(0).bytes());
  by_type(c.in(1).dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_each_index(
        stream, count(c.in(1)),
        Put<T>{c.in(1).as<T>().data(), c.out(0).as<T>().data(), Place(c.in(0).shape(), c.attrs)});
  });
}

}  // namespace

std::vector<DeviceKernel> slice() { return {{"slice", run}, {"slice_grad", run_grad}}; }

}  // namespace argosy::ops::on_device

#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {
namespace {

template <class To, class From>
ARGOSY_DEVICE To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Held to what the type can say; the end is a power of two, which a float has exactly.
    constexpr auto kLow = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto kEnd = static_cast<From>((std::numeric_limits<To>::max() >> 1) + 1) * 2;
    if (x >= kEnd) return std::numeric_limits<To>::max();
    if (x < kLow) return std::numeric_limits<To>::min();
    return x == x ? static_cast<To>(x) : To{0};
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
struct Convert {
  const From* x;
  To* y;
  ARGOSY_DEVICE void operator()(size_t i) const { y[i] = convert<To>(x[i]); }
};

template <class From>
void from(const RunCtx& c, Stream& stream) {
  by_type(c.out(0).dtype(), [&](auto to) {
    using To = decltype(to);
    for_each_index(stream, count(c.out(0)),
                   Convert<To, From>{c.in(0).as<From>().data(), c.out(0).as<To>().data()});
  });
}

void run(const RunCtx& c, Stream& stream) {
  by_type(c.in(0).dtype(), [&](auto kind) { from<decltype(kind)>(c, stream); });
}

}  // namespace

std::vector<DeviceKernel> cast() { return {{"cast", run}}; }

}  // namespace argosy::ops::on_device

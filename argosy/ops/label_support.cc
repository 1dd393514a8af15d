#include "argosy/ops/label_support.h"

#include <algorithm>

#include "argosy/ops/op_support.h"

namespace argosy::ops {

void check_labels(const Tensor& labels) {
  by_float(labels.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::span<const T> all = labels.as<T>();
    const auto is_label = [](T z) { return z >= 0 && z <= 1; };
    int32_t bad = 0;
    vectorized([&bad, is_label, z = all.data(), n = all.size()] {
      int32_t any = 0;
      for (size_t i = 0; i < n; ++i) any |= is_label(z[i]) ? 0 : 1;
      bad = any;
    });
    if (bad == 0) [[likely]]
      return;
    fail<DataError>("a label is ", *std::ranges::find_if_not(all, is_label),
                    ", expected 0 or 1, or a share from 0 to 1");
  });
}

}  // namespace argosy::ops

#pragma once

#include <algorithm>
#include <array>

#include "argosy/base/error.h"
#include "argosy/graph/attrs.h"
#include "argosy/tensor/shape.h"

namespace argosy::ops {

/// The part of one axis in a slice.
struct Range {
  int64_t start = 0, size = 0;
};
using Ranges = std::array<Range, Shape::kMaxRank>;  // by axis of x

inline Range clamped(int64_t start, int64_t end, int64_t size) {
  if (size == Shape::kAny) return {0, Shape::kAny};
  const auto place = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  return {place(start), std::max<int64_t>(place(end) - place(start), 0)};
}

inline Ranges ranges_of(const Shape& x, const Attrs& attrs) {
  Ranges ranges;
  for (int i = 0; i < x.rank(); ++i) ranges[static_cast<size_t>(i)] = {0, x[i]};
  const std::vector<int64_t>& axes = attrs.integers("axes");
  const std::vector<int64_t>& starts = attrs.integers("starts");
  const std::vector<int64_t>& ends = attrs.integers("ends");
  check<ConfigError>(starts.size() == axes.size() && ends.size() == axes.size(),
                     "needs a start and an end for each axis, got ", axes.size(), " axes, ",
                     starts.size(), " starts and ", ends.size(), " ends");
  std::array<bool, Shape::kMaxRank> taken{};
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = x.axis(axes[i]);
    const auto at = static_cast<size_t>(axis);
    check<ConfigError>(!taken[at], "axis ", axis, " is given twice");
    taken[at] = true;
    ranges[at] = clamped(starts[i], ends[i], x[axis]);
  }
  return ranges;
}

}  // namespace argosy::ops

#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "argosy/ops/op_support.h"

namespace argosy::ops {

/// Tells rows of an index from padding: {padding_idx=...}.
struct Padding {
  int64_t value = 0;
  bool given = false;

  Padding() = default;
  explicit Padding(const Attrs& attrs)
      : value(attrs.integer("padding_idx")), given(attrs.has("padding_idx")) {}
  bool covers(int64_t index) const { return given && index == value; }
};

/// Throws DataError naming the op for the first index that is neither a row nor padding.
template <class I>
void check_index(std::string_view op, std::span<const I> index, size_t rows,
                 const Padding& padding = {}) {
  const auto bad = std::ranges::find_if(
      index, [=](I at) { return static_cast<uint64_t>(at) >= rows && !padding.covers(at); });
  if (bad == index.end()) return;
  fail<DataError>(op, ": index ", *bad, " at position ", bad - index.begin(), ", expected 0 to ",
                  static_cast<int64_t>(rows) - 1);
}

}  // namespace argosy::ops

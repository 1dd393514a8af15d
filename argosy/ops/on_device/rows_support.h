#pragma once

#include "argosy/device/sort.h"
#include "argosy/ops/index_support.h"
#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {

/// Tells rows of an index from padding, on a device.
struct IndexRule {
  int64_t rows;
  int64_t padding;
  bool padded;

  IndexRule(const Tensor& table, const Attrs& attrs) : rows(table.shape()[0]) {
    const Padding given(attrs);
    padding = given.value;
    padded = given.given;
  }
  ARGOSY_DEVICE bool is_padding(int64_t at) const { return padded && at == padding; }
  ARGOSY_DEVICE bool is_row(int64_t at) const { return at >= 0 && at < rows; }
  /// Whether the index names a row; notes a fault if it is neither that nor padding.
  ARGOSY_DEVICE bool counts(int64_t at, size_t position, FaultOp op, device::Fault* fault) const {
    if (is_padding(at)) return false;
    if (!is_row(at)) note(fault, op, at, static_cast<int64_t>(position), rows);
    return is_row(at);
  }
};

/// Positions of an index in the order of the rows they name, those that count first; positions of
/// one row keep their order, so sums over them have the bits that the processor's have.
struct ByRow {
  const int64_t* rows;
  const int64_t* positions;
  size_t size;

  /// The first place in `rows` that is not less than `row`.
  ARGOSY_DEVICE size_t find(int64_t row) const {
    size_t low = 0, high = size;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (rows[middle] < row) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

template <class I>
struct NumberRows {
  const I* index;
  int64_t *rows, *positions;
  IndexRule rule;
  FaultOp op;
  device::Fault* fault;
  ARGOSY_DEVICE void operator()(size_t k) const {
    rows[k] = rule.counts(index[k], k, op, fault) ? index[k] : rule.rows;
    positions[k] = static_cast<int64_t>(k);
  }
};

/// f(by_row), with an index sorted by row.
template <class F>
void with_sorted_rows(Stream& stream, const Tensor& index, const IndexRule& rule, FaultOp op, F f) {
  const size_t n = count(index);
  const device::Scratch<int64_t> rows(stream, n), positions(stream, n);
  by_integer(index.dtype(), [&](auto kind) {
    using I = decltype(kind);
    for_each_index(stream, n,
                   NumberRows<I>{index.as<I>().data(), rows.data(), positions.data(), rule, op,
                                 stream.fault()});
  });
  device::sort_by_key(stream, rows.data(), positions.data(), n);
  f(ByRow{rows.data(), positions.data(), n});
}

}  // namespace argosy::ops::on_device

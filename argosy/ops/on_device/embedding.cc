#include "argosy/ops/on_device/rows_support.h"

namespace argosy::ops::on_device {
namespace {

template <class I>
struct LookUp {
  const float* rows;
  const I* index;
  float* out;
  size_t dim;
  IndexRule rule;
  device::Fault* fault;
  ARGOSY_DEVICE void operator()(size_t i) const {
    const size_t k = i / dim;
    const int64_t at = index[k];
    const bool counts = rule.counts(at, k, FaultOp::embedding, fault);
    out[i] = counts ? rows[static_cast<size_t>(at) * dim + i % dim] : 0;
  }
};

void run(const RunCtx& c, Stream& stream) {
  by_integer(c.in(1).dtype(), [&](auto kind) {
    using I = decltype(kind);
    for_each_index(stream, count(c.out(0)),
                   LookUp<I>{floats(c.in(0)), c.in(1).as<I>().data(), floats(c.out(0)),
                             static_cast<size_t>(c.in(0).shape()[1]), IndexRule(c.in(0), c.attrs),
                             stream.fault()});
  });
}

struct AddUp {
  ByRow by_row;
  const float* dout;
  float* drows;
  size_t dim;
  ARGOSY_DEVICE void operator()(size_t i) const {
    const auto row = static_cast<int64_t>(i / dim);
    float total = 0;
    for (size_t k = by_row.find(row); k < by_row.size && by_row.rows[k] == row; ++k)
      total += dout[static_cast<size_t>(by_row.positions[k]) * dim + i % dim];
    drows[i] = total;
  }
};

void run_grad(const RunCtx& c, Stream& stream) {  // (rows, index, dout) -> drows
  const IndexRule rule(c.in(0), c.attrs);
  with_sorted_rows(stream, c.in(1), rule, FaultOp::embedding, [&](const ByRow& by_row) {
    for_each_index(
        stream, count(c.out(0)),
        AddUp{by_row, floats(c.in(2)), floats(c.out(0)), static_cast<size_t>(c.in(0).shape()[1])});
  });
}

}  // namespace

std::vector<DeviceKernel> embedding() { return {{"embedding", run}, {"embedding_grad", run_grad}}; }

}  // namespace argosy::ops::on_device

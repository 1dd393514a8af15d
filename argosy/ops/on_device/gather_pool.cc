#include "argosy/ops/on_device/rows_support.h"

namespace argosy::ops::on_device {
namespace {

enum class Pool : uint8_t { sum, mean, sqrt, max };

Pool pool_of(const Attrs& attrs) {
  const std::string& name = attrs.text("pool");
  if (name == "mean") return Pool::mean;
  if (name == "sqrt") return Pool::sqrt;
  return name == "max" ? Pool::max : Pool::sum;
}

/// An index cut into bags, read as int64 from either width.
struct Bags {
  const int32_t *index32 = nullptr, *offsets32 = nullptr;
  const int64_t *index64 = nullptr, *offsets64 = nullptr;
  size_t positions, bags;
  IndexRule rule;

  explicit Bags(const RunCtx& c)
      : positions(count(c.in(1))),
        bags(c.in(2).numel() > 0 ? count(c.in(2)) - 1 : 0),
        rule(c.in(0), c.attrs) {
    if (c.in(1).dtype() == DType::i32) {
      index32 = c.in(1).as<int32_t>().data();
    } else {
      index64 = c.in(1).as<int64_t>().data();
    }
    if (c.in(2).dtype() == DType::i32) {
      offsets32 = c.in(2).as<int32_t>().data();
    } else {
      offsets64 = c.in(2).as<int64_t>().data();
    }
  }

  ARGOSY_DEVICE int64_t row(size_t position) const {
    return index64 != nullptr ? index64[position] : index32[position];
  }
  ARGOSY_DEVICE int64_t offset(size_t bag) const {
    return offsets64 != nullptr ? offsets64[bag] : offsets32[bag];
  }
  /// Offsets start at 0, never fall and end at the number of positions.
  ARGOSY_DEVICE bool offset_fits(size_t bag) const {
    const int64_t at = offset(bag), least = bag == 0 ? 0 : offset(bag - 1);
    const auto most = static_cast<int64_t>(bag == 0 ? 0 : positions);
    return at >= least && at <= most && (bag < bags || at == static_cast<int64_t>(positions));
  }
  ARGOSY_DEVICE bool fits(size_t bag) const { return offset_fits(bag) && offset_fits(bag + 1); }
  ARGOSY_DEVICE bool counts(size_t position) const {
    return !rule.is_padding(row(position)) && rule.is_row(row(position));
  }

  ARGOSY_DEVICE float divisor(Pool pool, size_t bag) const {
    if (pool == Pool::sum || pool == Pool::max) return 1;
    size_t found = 0;
    const auto end = static_cast<size_t>(offset(bag + 1));
    for (auto k = static_cast<size_t>(offset(bag)); k < end; ++k) found += counts(k) ? 1 : 0;
    if (found == 0) return 1;
    const auto size = static_cast<float>(found);
    return pool == Pool::mean ? size : std::sqrt(size);
  }

  /// The position of a bag whose row is the greatest in element i, the first of equal ones;
  /// `positions` where the bag has none.
  ARGOSY_DEVICE size_t greatest(const float* rows, size_t dim, size_t bag, size_t i) const {
    size_t best = positions;
    const auto end = static_cast<size_t>(offset(bag + 1));
    for (auto k = static_cast<size_t>(offset(bag)); k < end; ++k) {
      if (!counts(k)) continue;
      if (best == positions || rows[static_cast<size_t>(row(k)) * dim + i] >
                                   rows[static_cast<size_t>(row(best)) * dim + i])
        best = k;
    }
    return best;
  }
};

/// Notes what is wrong with a bag, and writes its number, counted from 1, to its positions.
struct Number {
  Bags bags;
  int64_t* bag_of;  // null: only look
  device::Fault* fault;
  ARGOSY_DEVICE void operator()(size_t bag) const {
    for (size_t end = bag; end < bag + 2; ++end)
      if (!bags.offset_fits(end))
        note(fault, FaultOp::offsets, bags.offset(end), static_cast<int64_t>(end),
             static_cast<int64_t>(bags.positions) + 1);
    if (!bags.fits(bag)) return;
    const auto last = static_cast<size_t>(bags.offset(bag + 1));
    for (auto k = static_cast<size_t>(bags.offset(bag)); k < last; ++k) {
      bags.rule.counts(bags.row(k), k, FaultOp::gather_pool, fault);
      if (bag_of != nullptr) bag_of[k] = static_cast<int64_t>(bag) + 1;
    }
  }
};

struct PoolRows {
  Bags bags;
  Pool pool;
  const float* rows;
  float* out;
  size_t dim;
  ARGOSY_DEVICE void operator()(size_t at) const {
    const size_t bag = at / dim, i = at % dim;
    out[at] = 0;
    if (!bags.fits(bag)) return;
    if (pool == Pool::max) {
      const size_t best = bags.greatest(rows, dim, bag, i);
      if (best < bags.positions) out[at] = rows[static_cast<size_t>(bags.row(best)) * dim + i];
      return;
    }
    float total = 0;
    const auto end = static_cast<size_t>(bags.offset(bag + 1));
    for (auto k = static_cast<size_t>(bags.offset(bag)); k < end; ++k)
      if (bags.counts(k)) total += rows[static_cast<size_t>(bags.row(k)) * dim + i];
    out[at] = total / bags.divisor(pool, bag);
  }
};

void run(const RunCtx& c, Stream& stream) {
  const Bags bags(c);
  for_each_index(stream, bags.bags, Number{bags, nullptr, stream.fault()});
  for_each_index(stream, count(c.out(0)),
                 PoolRows{bags, pool_of(c.attrs), floats(c.in(0)), floats(c.out(0)),
                          static_cast<size_t>(c.in(0).shape()[1])});
}

struct Divisors {
  Bags bags;
  Pool pool;
  float* by;
  ARGOSY_DEVICE void operator()(size_t bag) const {
    by[bag] = bags.fits(bag) ? bags.divisor(pool, bag) : 1;
  }
};

struct AddUp {
  Bags bags;
  ByRow by_row;
  Pool pool;
  const int64_t* bag_of;
  const float *by, *rows, *dout;
  float* drows;
  size_t dim;
  ARGOSY_DEVICE void operator()(size_t at) const {
    const auto row = static_cast<int64_t>(at / dim);
    const size_t i = at % dim;
    float total = 0;
    for (size_t k = by_row.find(row); k < by_row.size && by_row.rows[k] == row; ++k) {
      const auto position = static_cast<size_t>(by_row.positions[k]);
      if (bag_of[position] == 0) continue;
      const auto bag = static_cast<size_t>(bag_of[position] - 1);
      if (pool == Pool::max && bags.greatest(rows, dim, bag, i) != position) continue;
      total += dout[bag * dim + i] / by[bag];
    }
    drows[at] = total;
  }
};

void run_grad(const RunCtx& c, Stream& stream) {  // (rows, index, offsets, dout) -> drows
  const Bags bags(c);
  const Pool pool = pool_of(c.attrs);
  const device::Scratch<int64_t> bag_of(stream, bags.positions);
  const device::Scratch<float> by(stream, bags.bags);
  stream.zero(bag_of.data(), bags.positions * sizeof(int64_t));
  for_each_index(stream, bags.bags, Number{bags, bag_of.data(), stream.fault()});
  for_each_index(stream, bags.bags, Divisors{bags, pool, by.data()});
  with_sorted_rows(stream, c.in(1), bags.rule, FaultOp::gather_pool, [&](const ByRow& by_row) {
    for_each_index(
        stream, count(c.out(0)),
        AddUp{bags, by_row, pool, bag_of.data(), by.data(), floats(c.in(0)), floats(c.in(3)),
              floats(c.out(0)), static_cast<size_t>(c.in(0).shape()[1])});
  });
}

}  // namespace

std::vector<DeviceKernel> gather_pool() {
  return {{"gather_pool", run}, {"gather_pool_grad", run_grad}};
}

}  // namespace argosy::ops::on_device

// gather_pool(rows [n, dim], index [k], offsets [bags + 1]) {pool="sum", padding_idx=i} -> [bags,
// dim]: bag b pools the rows named by index[offsets[b]] to index[offsets[b + 1] - 1]. pool is sum,
// mean (the sum by the count), sqrt (by the count's square root) or max. An empty bag gives zeros.
// An index equal to padding_idx, which need not be a row, is left out and not counted.
#include "argosy/ops/index_support.h"

namespace argosy::ops {
namespace {

enum class Pool : uint8_t { sum, mean, sqrt, max };

Pool pool_of(const Attrs& attrs) {
  const std::string& name = attrs.text("pool");
  if (name.empty() || name == "sum") return Pool::sum;
  if (name == "mean") return Pool::mean;
  if (name == "sqrt") return Pool::sqrt;
  if (name == "max") return Pool::max;
  fail<ConfigError>("pool '", name, "', expected sum, mean, sqrt or max");
}

Shape pooled_shape(const InferCtx& c) {
  expect_float(c, 0);
  expect_rank(c, 0, 2);
  for (size_t i : {1, 2}) {
    expect_integer(c, i);
    expect_rank(c, i, 1);
  }
  pool_of(c.attrs);
  // No offsets at all are no bags, as in an empty batch.
  const int64_t offsets = c.in[2].shape[0];
  const int64_t bags = offsets == Shape::kAny ? offsets : std::max<int64_t>(offsets - 1, 0);
  return {bags, c.in[0].shape[1]};
}

void infer(const InferCtx& c) { c.out = {{pooled_shape(c), c.in[0].dtype}}; }

/// Offsets of either width; one branch per bag is cheaper than all loops twice.
struct Offsets {
  const int32_t* narrow = nullptr;
  const int64_t* wide = nullptr;

  explicit Offsets(const Tensor& offsets) {
    if (offsets.dtype() == DType::i32)
      narrow = offsets.as<int32_t>().data();
    else
      wide = offsets.as<int64_t>().data();
  }
  int64_t operator[](size_t bag) const { return wide != nullptr ? wide[bag] : narrow[bag]; }
};

void check_offsets(const Offsets& offsets, size_t count, size_t indices) {
  if (count == 0) return;
  check<DataError>(offsets[0] == 0, "gather_pool: offsets start at ", offsets[0], ", expected 0");
  for (size_t i = 1; i < count; ++i)
    check<DataError>(offsets[i] >= offsets[i - 1], "gather_pool: offset ", offsets[i],
                     " at position ", i, " is less than ", offsets[i - 1], " before it");
  check<DataError>(static_cast<uint64_t>(offsets[count - 1]) == indices,
                   "gather_pool: offsets end at ", offsets[count - 1], ", expected ", indices,
                   ", the number of indices");
}

/// The rows of one bag.
template <class T, class I>
struct Bag {
  const T* rows;
  size_t dim;
  std::span<const I> index;
  Padding padding;

  /// f(row number) for each that counts, in order; returns how many they were.
  template <class F>
  size_t for_each(F f) const {
    size_t count = 0;
    for (const I at : index) {
      if (padding.covers(at)) continue;
      f(static_cast<size_t>(at));
      ++count;
    }
    return count;
  }
};

template <class T>
T divisor(Pool pool, size_t count) {
  if (pool == Pool::sum || count == 0) return 1;
  return pool == Pool::mean ? static_cast<T>(count) : std::sqrt(static_cast<T>(count));
}

template <class T, class I>
void pool_sum(const Bag<T, I>& bag, Pool pool, T* out) {
  for (size_t i = 0; i < bag.dim; ++i) out[i] = 0;
  const size_t count = bag.for_each([&](size_t row) {
    const T* from = bag.rows + row * bag.dim;
    for (size_t i = 0; i < bag.dim; ++i) out[i] += from[i];
  });
  const T by = divisor<T>(pool, count);
  if (by == 1) return;
  for (size_t i = 0; i < bag.dim; ++i) out[i] /= by;
}

template <class T, class I>
void pool_max(const Bag<T, I>& bag, T* out) {
  for (size_t i = 0; i < bag.dim; ++i) out[i] = 0;
  bool first = true;
  bag.for_each([&](size_t row) {
    const T* from = bag.rows + row * bag.dim;
    for (size_t i = 0; i < bag.dim; ++i) out[i] = first || from[i] > out[i] ? from[i] : out[i];
    first = false;
  });
}

/// f(bag, its number) for each bag; throws where indices or offsets are wrong.
template <class T, class F>
void for_each_bag(const RunCtx& c, size_t bags, F f) {
  const Offsets offsets(c.in(2));
  const Padding padding(c.attrs);
  const T* rows = c.in(0).as<T>().data();
  const auto n_rows = static_cast<size_t>(c.in(0).shape()[0]);
  const auto dim = static_cast<size_t>(c.in(0).shape()[1]);
  check_offsets(offsets, static_cast<size_t>(c.in(2).numel()),
                static_cast<size_t>(c.in(1).numel()));
  by_integer(c.in(1).dtype(), [&](auto kind) {
    using I = decltype(kind);
    const auto index = c.in(1).as<I>();
    check_index("gather_pool", index, n_rows, padding);
    vectorized([=] {
      for (size_t b = 0; b < bags; ++b) {
        const auto from = static_cast<size_t>(offsets[b]), to = static_cast<size_t>(offsets[b + 1]);
        f(Bag<T, I>{rows, dim, index.subspan(from, to - from), padding}, b);
      }
    });
  });
}

void run(const RunCtx& c) {
  const Pool pool = pool_of(c.attrs);
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* out = c.out(0).as<T>().data();
    for_each_bag<T>(c, static_cast<size_t>(c.out(0).shape()[0]), [=](const auto& bag, size_t b) {
      if (pool == Pool::max) return pool_max(bag, out + b * bag.dim);
      pool_sum(bag, pool, out + b * bag.dim);
    });
  });
}

void infer_grad(const InferCtx& c) {
  const Shape expected = pooled_shape(c);
  check<ConfigError>(fits(c.in[3].shape, expected), "expected a gradient of shape ", expected,
                     ", got ", c.in[3].shape);
  c.out = {c.in[0]};
}

template <class T, class I>
void add_sum_grad(const Bag<T, I>& bag, Pool pool, const T* dout, T* drows) {
  const T by = divisor<T>(pool, bag.for_each([](size_t) {}));
  bag.for_each([&](size_t row) {
    T* to = drows + row * bag.dim;
    for (size_t i = 0; i < bag.dim; ++i) to[i] += dout[i] / by;
  });
}

/// Each element's gradient goes to the first row that holds the greatest.
template <class T, class I>
void add_max_grad(const Bag<T, I>& bag, const T* dout, T* drows) {
  for (size_t i = 0; i < bag.dim; ++i) {
    const T* best = nullptr;
    bag.for_each([&](size_t row) {
      const T* x = bag.rows + row * bag.dim + i;
      if (best == nullptr || *x > *best) best = x;
    });
    if (best != nullptr) drows[best - bag.rows] += dout[i];
  }
}

void run_grad(const RunCtx& c) {  // (rows, index, offsets, dout) -> drows
  const Pool pool = pool_of(c.attrs);
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::ranges::fill(c.out(0).as<T>(), zero);
    const T* dout = c.in(3).as<T>().data();
    T* drows = c.out(0).as<T>().data();
    for_each_bag<T>(c, static_cast<size_t>(c.in(3).shape()[0]), [=](const auto& bag, size_t b) {
      if (pool == Pool::max) return add_max_grad(bag, dout + b * bag.dim, drows);
      add_sum_grad(bag, pool, dout + b * bag.dim, drows);
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("gather_pool_grad", {c.in[0], c.in[1], c.in[2], c.dout[0]}, c.attrs), {}, {}};
}

std::vector<OpExample> examples() {
  const std::vector<std::vector<VarType>> refused = {
      {{{5, 3}, DType::f64}, {{6}, DType::i64}, {{4}, DType::f64}},
      {{{5, 3}, DType::f64}, {{6, 1}, DType::i64}, {{4}, DType::i64}},
      {{{5}, DType::f64}, {{6}, DType::i64}, {{4}, DType::i64}}};
  const Tensor rows = spread_tensor({5, 3});
  const Tensor index = integers({7}, {4, 0, 4, 2, 1, 1, 3});
  const Tensor offsets = integers({5}, {0, 3, 3, 4, 7});  // the second bag is empty
  std::vector<OpExample> all = {
      {.in = {rows, index, offsets}, .batched = {1, 2}, .refused = refused}};
  for (const char* pool : {"sum", "mean", "sqrt", "max"}) {
    all.push_back({.in = {rows, index, offsets}, .attrs = {{"pool", pool}}, .batched = {0, 1, 2}});
    all.push_back({.in = {rows, index, offsets},
                   .attrs = {{"pool", pool}, {"padding_idx", 4}},
                   .batched = {1, 2}});
  }
  return all;
}

}  // namespace

std::vector<OpDef> gather_pool() {
  return {{.name = "gather_pool",
           .inputs = 3,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "gather_pool_grad", .inputs = 4, .infer = infer_grad, .run = run_grad}};
}

}  // namespace argosy::ops

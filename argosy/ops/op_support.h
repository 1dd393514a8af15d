#pragma once

#include <array>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/isa.h"
#include "argosy/graph/builder.h"
#include "argosy/graph/op.h"
#include "argosy/tensor/math.h"

/// Shared by the files of ops/: types, loops over elements, examples.
namespace argosy::ops {

// ---- types ----

/// One output of the first input's type.
void same_as_first(const InferCtx& c);
/// As above; the input must be f32 or f64.
void same_float(const InferCtx& c);
/// Element-wise over two or more float inputs of one type, which broadcast.
void broadcast_all(const InferCtx& c);
/// As above, over floats or integers.
void broadcast_numbers(const InferCtx& c);

void expect_float(const InferCtx& c, size_t input);
void expect_rank(const InferCtx& c, size_t input, int rank);
void expect_same_type(const InferCtx& c, size_t a, size_t b);
void expect_integer(const InferCtx& c, size_t input);  // i32 or i64
void expect_number(const InferCtx& c, size_t input);   // f32, f64, i32 or i64
bool dims_agree(int64_t a, int64_t b);                 // equal, or one is kAny

/// Calls f with a value of float or double, by the type: by_float(t, [&](auto zero) { ... }).
template <class F>
void by_float(DType dtype, F f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    default:
      fail<ConfigError>("expected f32 or f64, got ", dtype);
  }
}

/// As above, over integer types: i32 and i64.
template <class F>
void by_integer(DType dtype, F f) {
  switch (dtype) {
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    default:
      fail<ConfigError>("expected i32 or i64, got ", dtype);
  }
}

/// As above, over floats and integers.
template <class F>
void by_number(DType dtype, F f) {
  if (is_float(dtype)) return by_float(dtype, f);
  by_integer(dtype, f);
}

/// As above, over every type.
template <class F>
void by_type(DType dtype, F f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::u8:
      return f(uint8_t{});
    case DType::b8:
      return f(bool{});
  }
}

// ---- loops ----

/// out[i] = f(in[i]); f is a generic lambda on float or double.
template <class F>
void map(const RunCtx& c, F f) {
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in(0).as<T>().data();
    T* y = c.out(0).as<T>().data();
    const auto n = static_cast<size_t>(c.out(0).numel());
    vectorized([=] {
      for (size_t i = 0; i < n; ++i) y[i] = f(x[i]);
    });
  });
}

/// out[i] = f(a[i], b[i]) over two inputs of one size, such as a value and its gradient.
template <class F>
void map2(const RunCtx& c, F f) {
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* a = c.in(0).as<T>().data();
    const T* b = c.in(1).as<T>().data();
    T* y = c.out(0).as<T>().data();
    const auto n = static_cast<size_t>(c.out(0).numel());
    vectorized([=] {
      for (size_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
    });
  });
}

/// Offsets at which a row of a broadcast starts in each array.
struct BroadcastRow {
  size_t a = 0, b = 0, out = 0;
};

/// The rows of a broadcast, counted up in place: for (const BroadcastRow& row : plan.rows).
class BroadcastRows {
 public:
  class Iterator {
   public:
    explicit Iterator(const BroadcastRows* rows)
        : rows_(rows), left_(rows == nullptr ? 0 : rows->count) {}
    const BroadcastRow& operator*() const { return row_; }
    Iterator& operator++();
    bool operator!=(const Iterator& end) const { return left_ != end.left_; }

   private:
    const BroadcastRows* rows_;
    size_t left_;
    BroadcastRow row_;
    std::array<size_t, Shape::kMaxRank> at_{};
  };
  Iterator begin() const { return Iterator(this); }
  Iterator end() const { return Iterator(nullptr); }

  size_t count = 0, length = 0;  // rows, and elements of each
  int axes = 0;
  std::array<size_t, Shape::kMaxRank> sizes{}, a_strides{}, b_strides{};
};

/// How two arrays are combined into one result: rows of `length` elements in which each input
/// advances by its step (1, or 0 if it is repeated).
struct Broadcast {
  size_t length = 0, a_step = 0, b_step = 0;
  BroadcastRows rows;
  Broadcast(const Shape& a, const Shape& b, const Shape& out);
};

inline BroadcastRows::Iterator& BroadcastRows::Iterator::operator++() {
  --left_;
  row_.out += rows_->length;
  for (int i = rows_->axes - 1; i >= 0; --i) {
    const auto axis = static_cast<size_t>(i);
    row_.a += rows_->a_strides[axis];
    row_.b += rows_->b_strides[axis];
    if (++at_[axis] < rows_->sizes[axis]) break;
    row_.a -= rows_->a_strides[axis] * rows_->sizes[axis];
    row_.b -= rows_->b_strides[axis] * rows_->sizes[axis];
    at_[axis] = 0;
  }
  return *this;
}

/// out = f(a, b) element by element with broadcasting, from T to R.
template <class T, class R, class F>
void zip(const Tensor& a_in, const Tensor& b_in, Tensor& out, F f) {
  const T* a = a_in.as<T>().data();
  const T* b = b_in.as<T>().data();
  R* y = out.as<R>().data();
  const auto n = static_cast<size_t>(out.numel());
  if (n == 0) return;
  if (a_in.numel() == out.numel() && b_in.numel() == out.numel()) {
    vectorized([=] {
      for (size_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
    });
    return;
  }
  const Broadcast plan(a_in.shape(), b_in.shape(), out.shape());
  vectorized([=, &plan, length = plan.length, sa = plan.a_step, sb = plan.b_step] {
    for (const BroadcastRow& row : plan.rows) {
      const T* ra = a + row.a;
      const T* rb = b + row.b;
      R* ry = y + row.out;
      if (sa == 1 && sb == 1) {
        for (size_t i = 0; i < length; ++i) ry[i] = f(ra[i], rb[i]);
      } else if (sb == 0 && sa == 1) {
        for (size_t i = 0; i < length; ++i) ry[i] = f(ra[i], rb[0]);
      } else {
        for (size_t i = 0; i < length; ++i) ry[i] = f(ra[i * sa], rb[i * sb]);
      }
    }
  });
}

/// y += x summed over the axes along which y's shape broadcasts to x's.
template <class T>
void sum_into(const Tensor& x_in, const Shape& y_shape, std::span<T> y) {
  if (x_in.numel() == 0) return;
  const T* x = x_in.as<T>().data();
  const Broadcast plan(x_in.shape(), y_shape, x_in.shape());
  vectorized([&plan, x, out = y.data()] {
    for (const BroadcastRow& row : plan.rows) {
      const T* from = x + row.a;
      T* to = out + row.b;
      if (plan.b_step == 0) {
        to[0] += math::sum(from, plan.length);
      } else {
        for (size_t i = 0; i < plan.length; ++i) to[i] += from[i];
      }
    }
  });
}

/// Settings of a reduction: {axes=[...]}, none meaning all, and {keepdim=1}.
Shape reduced_shape(const Shape& in, const Attrs& attrs);  // as the op's result has it
Shape kept_shape(const Shape& in, const Attrs& attrs);     // with reduced axes kept as 1
void infer_reduction(const InferCtx& c);

/// An axis of a shape as three counts: before it, along it, after it.
struct AxisSpan {
  size_t outer = 1, length = 1, inner = 1;
  AxisSpan(const Shape& shape, int axis);
};

// ---- gradients ----

/// A gradient of the broadcast result, summed back to the shape of one operand. Always a node, so
/// that a recorded program, which does not know the batch size, is the one an eager model gives.
Var sum_to(Var gradient, Var operand);

// ---- examples ----

/// Values in [-1, 1), the same on every call with the same seed; f64, as gradient checks want.
Tensor random_tensor(const Shape& shape, uint64_t seed = 1);
/// Values in [low, high).
Tensor random_tensor(const Shape& shape, double low, double high, uint64_t seed = 1);
/// Distinct values at least 0.05 apart, so that max and abs have no ties or kinks nearby.
Tensor spread_tensor(const Shape& shape, uint64_t seed = 1);
Tensor integers(const Shape& shape, std::initializer_list<int64_t> values);

/// Scratch memory of an op, per thread and `Tag`: it only grows, so that a steady state allocates
/// nothing. Content undefined.
template <class T, class Tag>
std::span<T> scratch(int64_t size) {
  thread_local std::vector<T> memory;
  if (memory.size() < static_cast<size_t>(size)) memory.resize(static_cast<size_t>(size));
  return {memory.data(), static_cast<size_t>(size)};
}

}  // namespace argosy::ops

#pragma once

#include "argosy/device/sums.h"
#include "argosy/ops/on_device/broadcast_support.h"
#include "argosy/ops/op_support.h"

namespace argosy::ops::on_device {

/// Maps an element of a reduction to its elements of x: axes of the result, and axes summed over.
class Reduction {
 public:
  /// `kept` has x's rank, with 1 where x is summed over.
  Reduction(const Shape& x, const Shape& kept) {
    size_t step = 1;
    for (int i = x.rank() - 1; i >= 0; --i) {
      const auto size = static_cast<size_t>(x[i]);
      if (kept[i] == 1 && size != 1) {
        over_.push(size, step);
      } else {
        along_.push(size, step);
      }
      step *= size;
    }
  }

  size_t outs() const { return along_.count; }
  size_t terms() const { return over_.count; }
  ARGOSY_DEVICE size_t operator()(size_t out, size_t term) const {
    return along_.place(out) + over_.place(term);
  }

 private:
  struct Axes {
    std::array<size_t, Shape::kMaxRank> sizes{}, steps{};
    size_t rank = 0, count = 1;

    void push(size_t size, size_t step) {  // innermost first
      sizes[rank] = size;
      steps[rank++] = step;
      count *= size;
    }
    ARGOSY_DEVICE size_t place(size_t at) const {
      size_t place = 0;
      for (size_t i = 0; i < rank; ++i) {
        place += at % sizes[i] * steps[i];
        at /= sizes[i];
      }
      return place;
    }
  };
  Axes along_, over_;
};

/// A shape with leading 1s, so that it has the rank of another.
inline Shape padded(const Shape& shape, int rank) {
  Shape out;
  for (int i = shape.rank(); i < rank; ++i) out.push_back(1);
  for (const int64_t size : shape) out.push_back(size);
  return out;
}

template <class T>
struct LoadTerm {
  const T* x;
  Reduction places;
  ARGOSY_DEVICE T operator()(size_t out, size_t term) const { return x[places(out, term)]; }
};

template <class T>
struct StoreQuotient {
  T* y;
  T by;
  ARGOSY_DEVICE void operator()(size_t out, T total) const { y[out] = total / by; }
};

/// y = x summed to the shape `kept`, by `by`.
template <class T>
void sum_to_kept(Stream& stream, const Tensor& x, const Shape& kept, Tensor& y, T by) {
  const Reduction places(x.shape(), kept);
  device::sums<T>(stream, count(y), places.terms(), LoadTerm<T>{x.as<T>().data(), places},
                  StoreQuotient<T>{y.as<T>().data(), by});
}

}  // namespace argosy::ops::on_device

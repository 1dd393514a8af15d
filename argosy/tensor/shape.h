#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>

#include "argosy/base/error.h"

namespace argosy {

/// Dimensions of an array, outermost first. Lives in place, so copying never allocates.
/// kAny (-1) is a size known only at run time, such as the batch.
class Shape {
 public:
  static constexpr int64_t kAny = -1;
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) {
    check<ConfigError>(dims.size() <= kMaxRank, "a shape has at most ", kMaxRank,
                       " dimensions, got ", dims.size());
    for (int64_t dim : dims) push_back(dim);
  }

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  /// Negative axes count from the end.
  int64_t operator[](int axis) const { return dims_[at(axis)]; }
  int64_t& operator[](int axis) { return dims_[at(axis)]; }
  int64_t back() const { return dims_[at(-1)]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  std::span<const int64_t> dims() const { return {begin(), end()}; }

  void push_back(int64_t dim) {
    check<ConfigError>(rank_ < kMaxRank, "a shape has at most ", kMaxRank, " dimensions");
    check<ConfigError>(dim >= kAny, "a dimension is -1 or more, got ", dim);
    dims_[static_cast<size_t>(rank_++)] = dim;
  }
  void erase(int axis);
  void insert(int axis, int64_t dim);

  /// True when no dimension is kAny.
  bool known() const { return std::ranges::find(dims(), kAny) == dims().end(); }
  /// Product of the dimensions; kAny if one is kAny.
  int64_t numel() const;

  /// Axis in [0, rank); throws ConfigError for one outside [-rank, rank).
  int axis(int64_t axis) const {
    check<ConfigError>(axis >= -rank_ && axis < rank_, "axis ", axis, " of ", *this);
    return static_cast<int>(axis < 0 ? axis + rank_ : axis);
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    return std::ranges::equal(a.dims(), b.dims());
  }
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);

 private:
  size_t at(int axis) const { return static_cast<size_t>(axis < 0 ? axis + rank_ : axis); }

  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// True if a tensor of shape `actual` may be used for `declared`, which may hold kAny.
bool fits(const Shape& actual, const Shape& declared);

/// Shape of an element-wise operation by NumPy's rules; throws ConfigError if they do not match.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace argosy

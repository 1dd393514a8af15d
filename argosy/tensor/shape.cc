#include "argosy/tensor/shape.h"

namespace argosy {

void Shape::erase(int axis) {
  const size_t from = at(axis);
  std::copy(begin() + from + 1, end(), dims_.begin() + static_cast<std::ptrdiff_t>(from));
  --rank_;
}

void Shape::insert(int axis, int64_t dim) {
  push_back(dim);
  const auto place = dims_.begin() + axis;
  std::rotate(place, dims_.begin() + rank_ - 1, dims_.begin() + rank_);
}

int64_t Shape::numel() const {
  if (!known()) return kAny;
  int64_t product = 1;
  for (int64_t dim : dims()) product *= dim;
  return product;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int i = 0; i < shape.rank(); ++i) out << (i ? "," : "") << shape[i];
  return out << ']';
}

bool fits(const Shape& actual, const Shape& declared) {
  return std::ranges::equal(actual.dims(), declared.dims(), [](int64_t have, int64_t want) {
    return want == Shape::kAny || have == Shape::kAny || have == want;
  });
}

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  for (int i = 1; i <= shorter.rank(); ++i) {
    const int64_t x = longer[-i], y = shorter[-i];
    if (x == y || y == 1) continue;
    if (x == 1) {
      result[-i] = y;
    } else if (x == Shape::kAny || y == Shape::kAny) {
      // An unknown size beside a known one greater than 1 must turn out equal to it or be 1.
      result[-i] = std::max(x, y);
    } else {
      fail<ConfigError>(a, " and ", b, " do not broadcast: ", x, " against ", y, " on axis ", -i);
    }
  }
  return result;
}

}  // namespace argosy

// floor_divide(a, b) and remainder(a, b) as Python's // and %, element by element with
// broadcasting, on floats and integers. They have no gradient.
#include <cmath>
#include <type_traits>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

template <class T>
T floored(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const T quotient = a / b;
    return quotient - static_cast<T>(a % b != 0 && (a < 0) != (b < 0));
  } else {
    return std::floor(a / b);
  }
}

template <class T>
void expect_divisors(const Tensor& b) {
  if constexpr (std::is_integral_v<T>) {
    for (const T value : b.as<T>()) check<DataError>(value != 0, "a division of integers by 0");
  }
}

/// Integers modulo -1 would overflow for the least one.
template <class T>
T left_over(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    if (b == -1) return 0;
  return a - floored(a, b) * b;
}

template <bool kQuotient>
void run(const RunCtx& c) {
  by_number(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    expect_divisors<T>(c.in(1));
    zip<T, T>(c.in(0), c.in(1), c.out(0),
              [](T a, T b) { return kQuotient ? floored(a, b) : left_over(a, b); });
  });
}

std::vector<OpExample> examples() {
  return {{.in = {random_tensor({3, 4}, -5.0, 5.0), random_tensor({3, 4}, 0.5, 2.0, 2)},
           .batched = {0, 1},
           .refused = {{{{3, 4}, DType::f64}, {{3, 5}, DType::f64}},
                       {{{3, 4}, DType::f64}, {{3, 4}, DType::i64}}}},
          {.in = {integers({3, 2}, {7, -7, 6, -6, 0, 5}), integers({2}, {3, -4})}}};
}

template <bool kQuotient>
OpDef division(const char* name) {
  return {.name = name,
          .inputs = 2,
          .trait = OpTrait::elementwise,
          .infer = broadcast_numbers,
          .run = run<kQuotient>,
          .examples = examples};
}

}  // namespace

std::vector<OpDef> remainder() {
  return {division<true>("floor_divide"), division<false>("remainder")};
}

}  // namespace argosy::ops

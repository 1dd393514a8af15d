// cast(x) {to="f32"}: x as another type. A float becomes the nearest integer towards zero, held to
// what the type can say, and NaN becomes 0; anything but 0 is true. Integers wrap around.
#include <limits>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) { c.out = {{c.in[0].shape, parse_dtype(c.attrs.text("to"))}}; }

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    constexpr auto kLow = static_cast<From>(Limits::min());
    constexpr auto kEnd = static_cast<From>((Limits::max() >> 1) + 1) * 2;  // a power of two: exact
    return x >= kEnd ? Limits::max()
                     : (x < kLow ? Limits::min() : (x == x ? static_cast<To>(x) : 0));
  } else {
    return static_cast<To>(x);
  }
}

void run(const RunCtx& c) {
  by_type(c.in(0).dtype(), [&](auto from) {
    by_type(c.out(0).dtype(), [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      const From* x = c.in(0).as<From>().data();
      To* y = c.out(0).as<To>().data();
      vectorized([=, n = static_cast<size_t>(c.out(0).numel())] {
        for (size_t i = 0; i < n; ++i) y[i] = convert<To>(x[i]);
      });
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  const DType from = c.in[0].type().dtype;
  if (!is_float(from) || !is_float(c.out[0].type().dtype)) return {{}};
  return {c.g.apply("cast", {c.dout[0]}, {{"to", name(from)}})};
}

std::vector<OpExample> examples() {
  const auto to = [](Tensor x, const char* type) {
    return OpExample{.in = {std::move(x)}, .attrs = {{"to", type}}};
  };
  const Tensor x = spread_tensor({3, 4}), numbers = integers({3, 1}, {0, 1, -300});
  return {to(x, "f64"),
          to(x, "i64"),
          to(x, "i32"),
          to(x, "u8"),
          to(x, "b8"),
          to(numbers, "f32"),
          to(numbers, "i32"),
          to(numbers, "u8"),
          to(numbers, "b8"),
          to(Tensor::of<bool>({3}, {true, false, true}), "f32"),
          to(Tensor::of<uint8_t>({3}, {0, 7, 255}), "i64")};
}

}  // namespace

std::vector<OpDef> cast() {
  return {{.name = "cast",
           .trait = OpTrait::elementwise,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

// dropout(x) {p=0.5, mode="upscale_in_train", is_test=0} -> (y, mask u8): each element is dropped
// with probability p. upscale_in_train divides the kept ones by 1-p and leaves a test alone;
// downgrade_in_infer leaves the kept ones alone and multiplies by 1-p in a test.
#include <cmath>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

double p_of(const Attrs& attrs) { return attrs.real("p", 0.5); }
bool upscales(const Attrs& attrs) { return attrs.text("mode") != "downgrade_in_infer"; }
bool is_test(const Attrs& attrs) { return attrs.integer("is_test") != 0; }

/// The factor of elements that are kept.
double factor_of(const Attrs& attrs) {
  const double p = p_of(attrs);
  if (upscales(attrs) == is_test(attrs)) return 1.0;
  if (is_test(attrs)) return 1.0 - p;
  return p < 1.0 ? 1.0 / (1.0 - p) : 0.0;
}

void infer(const InferCtx& c) {
  same_float(c);
  const double p = p_of(c.attrs);
  const std::string& mode = c.attrs.text("mode");
  check<ConfigError>(p >= 0 && p <= 1, "p must be in [0, 1], got ", p);
  check<ConfigError>(mode.empty() || mode == "upscale_in_train" || mode == "downgrade_in_infer",
                     "mode '", mode, "', expected upscale_in_train or downgrade_in_infer");
  c.out.push_back({c.in[0].shape, DType::u8});
}

/// mask[i] = 1 where number i of the stream, uniform in [0, 1), is p or more.
void draw(const RandomStream& random, double p, std::span<uint8_t> mask) {
  const auto least = static_cast<int64_t>(std::ceil(p * 0x1.0p53));
  vectorized([=] {
    // Copies, since a byte written could be any byte of what was captured.
    const RandomStream stream = random;
    const int64_t threshold = least;
    uint8_t* kept = mask.data();
    for (size_t i = 0, n = mask.size(); i < n; ++i)
      kept[i] = static_cast<int64_t>(stream.bits(i) >> 11) >= threshold;
  });
}

/// y = x * factor where mask is 1, else 0.
void apply_mask(const Tensor& x_in, const Tensor& mask_in, double factor, Tensor& y_out) {
  by_float(x_in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = x_in.as<T>().data();
    const uint8_t* mask = mask_in.as<uint8_t>().data();
    T* y = y_out.as<T>().data();
    vectorized([=, f = static_cast<T>(factor), n = static_cast<size_t>(y_out.numel())] {
      for (size_t i = 0; i < n; ++i) {
        const T kept = x[i] * f;
        y[i] = mask[i] != 0 ? kept : T{0};
      }
    });
  });
}

void run(const RunCtx& c) {
  auto mask = c.out(1).as<uint8_t>();
  if (is_test(c.attrs)) {
    std::ranges::fill(mask, uint8_t{1});
  } else {
    draw(c.random(), p_of(c.attrs), mask);
  }
  apply_mask(c.in(0), c.out(1), factor_of(c.attrs), c.out(0));
}

void run_grad(const RunCtx& c) {  // (dy, mask) -> dx
  apply_mask(c.in(0), c.in(1), factor_of(c.attrs), c.out(0));
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("dropout_grad", {c.dout[0], c.out[1]}, c.attrs)};
}

std::vector<OpExample> examples() {
  const Tensor x = random_tensor({3, 40});
  return {
      {.in = {x}, .refused = {{{{3, 4}, DType::i64}}}},
      {.in = {x}, .attrs = {{"p", 0.2}, {"mode", "upscale_in_train"}}},
      {.in = {x}, .attrs = {{"p", 0.2}, {"mode", "downgrade_in_infer"}}},
      {.in = {x}, .attrs = {{"p", 0.2}, {"is_test", int64_t{1}}}},
      {.in = {x}, .attrs = {{"p", 0.2}, {"mode", "downgrade_in_infer"}, {"is_test", int64_t{1}}}}};
}

}  // namespace

std::vector<OpDef> dropout() {
  return {{.name = "dropout",
           .trait = OpTrait::inplace,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "dropout_grad",
           .inputs = 2,
           .trait = OpTrait::elementwise,
           .infer = same_as_first,
           .run = run_grad}};
}

}  // namespace argosy::ops

// matmul(a, b): the last two axes multiply, earlier axes are batches that must agree (b may have
// none). trans_a and trans_b read an operand transposed.
#include "argosy/ops/op_support.h"
#include "argosy/tensor/gemm.h"

namespace argosy::ops {
namespace {

struct Sizes {
  int64_t m, k, n, k_of_b;
};

Sizes sizes(const Shape& a, const Shape& b, const Attrs& attrs) {
  const bool ta = attrs.integer("trans_a") != 0, tb = attrs.integer("trans_b") != 0;
  return {
      .m = a[ta ? -1 : -2], .k = a[ta ? -2 : -1], .n = b[tb ? -2 : -1], .k_of_b = b[tb ? -1 : -2]};
}

void infer(const InferCtx& c) {
  expect_float(c, 0);
  expect_same_type(c, 0, 1);
  const Shape &a = c.in[0].shape, &b = c.in[1].shape;
  check<ConfigError>(a.rank() >= 2 && b.rank() >= 2, "both inputs need two axes or more, got ", a,
                     " and ", b);
  const Sizes s = sizes(a, b, c.attrs);
  check<ConfigError>(dims_agree(s.k, s.k_of_b), "inner sizes differ: ", s.k, " in ", a, " against ",
                     s.k_of_b, " in ", b);
  Shape out = a;
  out[-2] = s.m;
  out[-1] = s.n;
  if (b.rank() > 2 || (a.rank() > 2 && c.attrs.integer("trans_a") != 0)) {
    check<ConfigError>(a.rank() == b.rank(), "batch axes differ: ", a, " against ", b);
    for (int i = 0; i < a.rank() - 2; ++i)
      check<ConfigError>(dims_agree(a[i], b[i]), "batch axes differ: ", a, " against ", b);
  }
  c.out = {{out, c.in[0].dtype}};
}

void run(const RunCtx& c) {
  const Shape &a = c.in(0).shape(), &b = c.in(1).shape();
  const Sizes s = sizes(a, b, c.attrs);
  const bool ta = c.attrs.integer("trans_a") != 0, tb = c.attrs.integer("trans_b") != 0;
  int64_t batches = 1;
  for (int i = 0; i < a.rank() - 2; ++i) batches *= a[i];
  GemmSpec spec{.m = s.m, .n = s.n, .k = s.k, .trans_a = ta, .trans_b = tb};
  if (b.rank() == 2 && !ta) {  // one tall product
    spec.m *= batches;
    batches = 1;
  }
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *pa = c.in(0).as<T>().data(), *pb = c.in(1).as<T>().data();
    T* out = c.out(0).as<T>().data();
    for (int64_t i = 0; i < batches; ++i)
      gemm(spec, pa + i * spec.m * spec.k, pb + (b.rank() > 2 ? i * spec.k * spec.n : 0), nullptr,
           out + i * spec.m * spec.n);
  });
}

std::vector<Var> grad(const GradCtx& c) {
  const bool ta = c.attrs.integer("trans_a") != 0, tb = c.attrs.integer("trans_b") != 0;
  const Var a = c.in[0], b = c.in[1], d = c.dout[0];
  const auto product = [&](Var x, bool tx, Var y, bool ty) {
    return c.g.apply("matmul", {x, y}, {{"trans_a", int64_t{tx}}, {"trans_b", int64_t{ty}}});
  };
  Var da, db;
  if (c.needs[0]) da = ta ? product(b, tb, d, true) : product(d, false, b, !tb);
  if (c.needs[1]) {
    db = tb ? product(d, true, a, ta) : product(a, !ta, d, false);
    if (b.shape().rank() < a.shape().rank()) db = sum_to(db, b);
  }
  return {da, db};
}

std::vector<OpExample> examples() {
  const std::vector<std::vector<VarType>> refused = {{{{3, 4}, DType::f64}, {{5, 2}, DType::f64}},
                                                     {{{3, 4}, DType::f64}, {{4}, DType::f64}}};
  const Tensor a = random_tensor({3, 4}), b = random_tensor({4, 2}, 2);
  const Tensor at = random_tensor({4, 3}), bt = random_tensor({2, 4}, 2);
  return {
      {.in = {a, b}, .refused = refused},
      {.in = {at, b}, .attrs = {{"trans_a", int64_t{1}}}, .batched = {}},
      {.in = {a, bt}, .attrs = {{"trans_b", int64_t{1}}}},
      {.in = {at, bt}, .attrs = {{"trans_a", int64_t{1}}, {"trans_b", int64_t{1}}}, .batched = {}},
      {.in = {random_tensor({2, 3, 4}), random_tensor({2, 4, 2}, 2)}, .batched = {0, 1}},
      {.in = {random_tensor({2, 4, 3}), random_tensor({2, 2, 4}, 2)},
       .attrs = {{"trans_a", int64_t{1}}, {"trans_b", int64_t{1}}},
       .batched = {0, 1}},
      {.in = {random_tensor({2, 3, 4}), b}},
  };
}

}  // namespace

std::vector<OpDef> matmul() {
  return {{.name = "matmul",
           .inputs = 2,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples}};
}

}  // namespace argosy::ops

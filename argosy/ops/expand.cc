// expand(x) {shape=[...]}: x broadcast to this shape, where -1 or 0 keeps x's size on that axis.
#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  const Shape& in = c.in[0].shape;
  const std::vector<int64_t>& wanted = c.attrs.integers("shape");
  const int added = static_cast<int>(wanted.size()) - in.rank();
  check<ConfigError>(added >= 0, "shape ", Shape(wanted), " has fewer axes than ", in);
  Shape out;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const int axis = static_cast<int>(i) - added;
    const bool keeps = wanted[i] == -1 || wanted[i] == 0;
    check<ConfigError>(axis >= 0 || !keeps, "new axis ", i, " needs a size, got ", wanted[i]);
    const bool meets = axis < 0 || keeps || in[axis] == 1 || dims_agree(in[axis], wanted[i]);
    check<ConfigError>(meets, in, " does not broadcast to ", Shape(wanted));
    out.push_back(keeps ? in[axis] : wanted[i]);
  }
  c.out = {{out, c.in[0].dtype}};
}

void run(const RunCtx& c) {
  if (c.out(0).numel() == 0) return;
  by_type(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in(0).as<T>().data();
    T* y = c.out(0).as<T>().data();
    const Broadcast plan(c.in(0).shape(), c.out(0).shape(), c.out(0).shape());
    for (const BroadcastRow& row : plan.rows) {
      if (plan.a_step == 0) {
        std::fill_n(y + row.out, plan.length, x[row.a]);
      } else {
        std::copy_n(x + row.a, plan.length, y + row.out);
      }
    }
  });
}

std::vector<Var> grad(const GradCtx& c) { return {sum_to(c.dout[0], c.in[0])}; }

std::vector<OpExample> examples() {
  using Sizes = std::vector<int64_t>;
  return {{.in = {random_tensor({3, 1, 2})},
           .attrs = {{"shape", Sizes{-1, 4, 0}}},
           .refused = {{{{3, 3, 2}, DType::f64}}, {{{3, 1}, DType::f64}}}},
          {.in = {random_tensor({3, 1})},
           .attrs = {{"shape", Sizes{2, -1, 4}}},
           .refused = {{{{3, 3, 2, 1}, DType::f64}}}},
          {.in = {random_tensor({1})}, .attrs = {{"shape", Sizes{5}}}, .batched = {}},
          {.in = {integers({2, 1}, {1, 2})}, .attrs = {{"shape", Sizes{0, 3}}}}};
}

}  // namespace

std::vector<OpDef> expand() {
  return {{.name = "expand", .infer = infer, .run = run, .grad = grad, .examples = examples}};
}

}  // namespace argosy::ops

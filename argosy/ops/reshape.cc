// reshape(x) {shape=[...]}: the same elements under another shape. One -1 is worked out, a 0 keeps
// the input's size on that axis.
#include <cstring>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  const Shape& in = c.in[0].shape;
  Shape out;
  int open = -1;
  const std::vector<int64_t>& wanted = c.attrs.integers("shape");
  for (size_t i = 0; i < wanted.size(); ++i) {
    const int axis = static_cast<int>(i);
    check<ConfigError>(wanted[i] != 0 || axis < in.rank(), "a 0 on axis ", axis,
                       " but the input is ", in);
    out.push_back(wanted[i] == 0 ? in[axis] : wanted[i]);
    if (wanted[i] != -1) continue;
    check<ConfigError>(open < 0, "at most one -1, got ", Shape(wanted));
    open = axis;
  }
  if (open >= 0 && in.known()) {
    Shape rest = out;
    rest[open] = 1;
    const int64_t others = rest.numel();
    if (others > 0) {
      check<ConfigError>(in.numel() % others == 0, "cannot reshape ", in, " to ", out);
      out[open] = in.numel() / others;
    } else {
      out[open] = 0;
    }
  }
  if (in.known() && out.known())
    check<ConfigError>(in.numel() == out.numel(), "cannot reshape ", in, " to ", out);
  c.out = {{out, c.in[0].dtype}};
}

void infer_like(const InferCtx& c) { c.out = {{c.in[1].shape, c.in[0].dtype}}; }

void run(const RunCtx& c) {
  if (c.out(0).numel() > 0) std::memcpy(c.out(0).data(), c.in(0).data(), c.out(0).bytes());
}

std::vector<Var> grad(const GradCtx& c) {
  return {c.g.apply("reshape_like", {c.dout[0], c.in[0]})};
}

std::vector<OpExample> examples() {
  const Tensor x = random_tensor({3, 4});
  return {{.in = {x},
           .attrs = {{"shape", std::vector<int64_t>{-1, 2, 2}}},
           .refused = {{{{3, 5}, DType::f64}}}},
          {.in = {x}, .attrs = {{"shape", std::vector<int64_t>{0, 2, 2}}}}};
}

}  // namespace

std::vector<OpDef> reshape() {
  return {{.name = "reshape",
           .trait = OpTrait::view,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "reshape_like",
           .inputs = 2,
           .trait = OpTrait::view,
           .shape_of = 1,
           .infer = infer_like,
           .run = run}};
}

}  // namespace argosy::ops

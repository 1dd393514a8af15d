// equal, not_equal, less, less_equal, greater, greater_equal (a, b): b8 results, with broadcasting,
// over two inputs of one type, whichever it is. They have no gradient.
#include <functional>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void infer(const InferCtx& c) {
  expect_same_type(c, 0, 1);
  c.out = {{broadcast(c.in[0].shape, c.in[1].shape), DType::b8}};
}

template <class Relation>
void run(const RunCtx& c) {
  by_type(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    zip<T, bool>(c.in(0), c.in(1), c.out(0), [](T a, T b) { return Relation{}(a, b); });
  });
}

std::vector<OpExample> examples() {
  return {{.in = {spread_tensor({3, 4}), spread_tensor({3, 4}, 2)},
           .batched = {0, 1},
           .refused = {{{{3, 4}, DType::f64}, {{3, 5}, DType::f64}},
                       {{{3, 4}, DType::f64}, {{3, 4}, DType::i64}}}},
          {.in = {integers({3, 2}, {1, 2, 3, 4, 5, 6}), integers({2}, {3, 4})}},
          {.in = {Tensor::of<uint8_t>({3}, {0, 1, 2}), Tensor::of<uint8_t>({3}, {2, 1, 0})},
           .batched = {0, 1}},
          {.in = {Tensor::of<bool>({2, 1}, {false, true}), Tensor::of<bool>({2}, {false, true})}}};
}

template <class Relation>
OpDef comparison(const char* name) {
  return {.name = name,
          .inputs = 2,
          .trait = OpTrait::elementwise,
          .infer = infer,
          .run = run<Relation>,
          .examples = examples};
}

}  // namespace

std::vector<OpDef> compare() {
  return {comparison<std::equal_to<>>("equal"),  comparison<std::not_equal_to<>>("not_equal"),
          comparison<std::less<>>("less"),       comparison<std::less_equal<>>("less_equal"),
          comparison<std::greater<>>("greater"), comparison<std::greater_equal<>>("greater_equal")};
}

}  // namespace argosy::ops

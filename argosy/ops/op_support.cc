#include "argosy/ops/op_support.h"

#include <algorithm>
#include <numeric>

namespace argosy::ops {

void same_as_first(const InferCtx& c) { c.out = {c.in[0]}; }

void same_float(const InferCtx& c) {
  expect_float(c, 0);
  for (size_t i = 1; i < c.in.size(); ++i) {
    expect_same_type(c, 0, i);
    check<ConfigError>(fits(c.in[i].shape, c.in[0].shape), "inputs must have one shape, got ",
                       c.in[0].shape, " and ", c.in[i].shape);
  }
  c.out = {c.in[0]};
}

void broadcast_all(const InferCtx& c) {
  expect_float(c, 0);
  broadcast_numbers(c);
}

void broadcast_numbers(const InferCtx& c) {
  expect_number(c, 0);
  Shape shape = c.in[0].shape;
  for (size_t i = 1; i < c.in.size(); ++i) {
    expect_same_type(c, 0, i);
    shape = broadcast(shape, c.in[i].shape);
  }
  c.out = {{shape, c.in[0].dtype}};
}

void expect_float(const InferCtx& c, size_t input) {
  check<ConfigError>(is_float(c.in[input].dtype), "input ", input, " must be f32 or f64, got ",
                     c.in[input]);
}

void expect_rank(const InferCtx& c, size_t input, int rank) {
  check<ConfigError>(c.in[input].shape.rank() == rank, "input ", input, " must have ", rank,
                     " axes, got ", c.in[input]);
}

void expect_same_type(const InferCtx& c, size_t a, size_t b) {
  check<ConfigError>(c.in[a].dtype == c.in[b].dtype, "inputs ", a, " and ", b,
                     " must have one type, got ", c.in[a], " and ", c.in[b]);
}

void expect_number(const InferCtx& c, size_t input) {
  check<ConfigError>(is_float(c.in[input].dtype) || c.in[input].dtype == DType::i32 ||
                         c.in[input].dtype == DType::i64,
                     "input ", input, " must be f32, f64, i32 or i64, got ", c.in[input]);
}

void expect_integer(const InferCtx& c, size_t input) {
  const DType dtype = c.in[input].dtype;
  check<ConfigError>(dtype == DType::i32 || dtype == DType::i64, "input ", input,
                     " must be i32 or i64, got ", c.in[input]);
}

bool dims_agree(int64_t a, int64_t b) { return a == b || a == Shape::kAny || b == Shape::kAny; }

Broadcast::Broadcast(const Shape& a, const Shape& b, const Shape& out) {
  const int rank = out.rank();
  const auto dim = [&](const Shape& s, int i) {
    const int64_t at = i - (rank - s.rank());
    return at < 0 ? int64_t{1} : s[static_cast<int>(at)];
  };
  // The innermost row: as many trailing axes as both inputs walk through in one way.
  const auto moves = [&](const Shape& s, int i) { return dim(s, i) == out[i] && out[i] != 1; };
  int split = rank;
  length = 1;
  bool a_moves = false, b_moves = false;
  while (split > 0) {
    const int i = split - 1;
    if (out[i] != 1) {
      if (length > 1 && (moves(a, i) != a_moves || moves(b, i) != b_moves)) break;
      a_moves = moves(a, i);
      b_moves = moves(b, i);
      length *= static_cast<size_t>(out[i]);
    }
    --split;
  }
  a_step = a_moves ? 1 : 0;
  b_step = b_moves ? 1 : 0;

  rows.axes = split;
  rows.length = length;
  rows.count = length == 0 ? 0 : 1;
  const auto stride = [&](const Shape& s, int axis) {
    if (dim(s, axis) == 1) return size_t{0};
    size_t product = 1;
    for (int i = axis + 1; i < rank; ++i) product *= static_cast<size_t>(dim(s, i));
    return product;
  };
  for (int i = 0; i < split; ++i) {
    const auto axis = static_cast<size_t>(i);
    rows.sizes[axis] = static_cast<size_t>(out[i]);
    rows.count *= rows.sizes[axis];
    rows.a_strides[axis] = stride(a, i);
    rows.b_strides[axis] = stride(b, i);
  }
}

Shape kept_shape(const Shape& in, const Attrs& attrs) {
  const std::vector<int64_t>& axes = attrs.integers("axes");
  Shape out = in;
  for (int i = 0; axes.empty() && i < in.rank(); ++i) out[i] = 1;
  for (int64_t axis : axes) out[in.axis(axis)] = 1;
  return out;
}

Shape reduced_shape(const Shape& in, const Attrs& attrs) {
  if (attrs.integer("keepdim") != 0) return kept_shape(in, attrs);
  const std::vector<int64_t>& axes = attrs.integers("axes");
  if (axes.empty()) return {1};
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    const bool reduced =
        std::ranges::any_of(axes, [&](int64_t axis) { return in.axis(axis) == i; });
    if (!reduced) out.push_back(in[i]);
  }
  return out.empty() ? Shape{1} : out;
}

void infer_reduction(const InferCtx& c) {
  expect_float(c, 0);
  c.out = {{reduced_shape(c.in[0].shape, c.attrs), c.in[0].dtype}};
}

AxisSpan::AxisSpan(const Shape& shape, int axis) {
  for (int i = 0; i < shape.rank(); ++i) {
    size_t& count = i < axis ? outer : (i == axis ? length : inner);
    count *= static_cast<size_t>(shape[i]);
  }
}

Var sum_to(Var gradient, Var operand) { return gradient.g->apply("sum_to", {gradient, operand}); }

Tensor random_tensor(const Shape& shape, uint64_t seed) {
  return random_tensor(shape, -1.0, 1.0, seed);
}

Tensor random_tensor(const Shape& shape, double low, double high, uint64_t seed) {
  Tensor tensor(shape, DType::f64);
  const RandomStream random(seed);
  auto values = tensor.as<double>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * random.uniform(i);
  return tensor;
}

Tensor spread_tensor(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape, DType::f64);
  auto values = tensor.as<double>();
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const RandomStream random(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  const auto half = static_cast<double>(values.size()) / 2;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (static_cast<double>(order[i]) - half + 0.5) * 0.1;
  return tensor;
}

Tensor integers(const Shape& shape, std::initializer_list<int64_t> values) {
  return Tensor::of<int64_t>(shape, values);
}

}  // namespace argosy::ops

// conv2d(x [n, c, h, w], filter [o, c / groups, kh, kw]) {strides=[1, 1], paddings=[0, 0, 0, 0]
// (top, bottom, left, right), dilations=[1, 1], groups=1} -> [n, o, oh, ow]: each output is the sum
// of the products of a filter with the window of x below it.
#include <algorithm>
#include <array>

#include "argosy/ops/op_support.h"
#include "argosy/tensor/gemm.h"

namespace argosy::ops {
namespace {

/// An attribute of n numbers, all of them the default where it is absent.
template <size_t n>
std::array<int64_t, n> numbers(const Attrs& attrs, const char* name, int64_t otherwise) {
  const std::vector<int64_t>& given = attrs.integers(name);
  check<ConfigError>(given.empty() || given.size() == n, name, " needs ", n, " numbers, got ",
                     given.size());
  std::array<int64_t, n> result;
  result.fill(otherwise);
  std::ranges::copy(given, result.begin());
  return result;
}

/// How windows lie along one axis.
struct Windows {
  int64_t size, kernel, stride, before, after, dilation;

  int64_t count() const {
    if (size == Shape::kAny) return Shape::kAny;
    const int64_t room = size + before + after - dilation * (kernel - 1) - 1;
    check<ConfigError>(room >= 0, "a filter of ", kernel, " does not fit into ", size, " elements");
    return room / stride + 1;
  }
  /// Position of element k of window i; outside of [0, size) it is padding.
  int64_t place(int64_t window, int64_t k) const { return window * stride - before + k * dilation; }
};

struct Plan {
  Windows rows, columns;
  int64_t samples, channels, filters, groups;

  Plan(const Shape& x, const Shape& filter, const Attrs& attrs)
      : samples(x[0]), channels(x[1]), filters(filter[0]), groups(attrs.integer("groups", 1)) {
    const auto strides = numbers<2>(attrs, "strides", 1);
    const auto paddings = numbers<4>(attrs, "paddings", 0);
    const auto dilations = numbers<2>(attrs, "dilations", 1);
    for (const int64_t value : {strides[0], strides[1], dilations[0], dilations[1], groups})
      check<ConfigError>(value >= 1, "strides, dilations and groups are at least 1, got ", value);
    rows = {x[2], filter[2], strides[0], paddings[0], paddings[1], dilations[0]};
    columns = {x[3], filter[3], strides[1], paddings[2], paddings[3], dilations[1]};
  }
  int64_t group_channels() const { return channels / groups; }
  int64_t group_filters() const { return filters / groups; }
  int64_t taps() const { return group_channels() * rows.kernel * columns.kernel; }
  int64_t windows() const { return rows.count() * columns.count(); }
  int64_t pixels() const { return rows.size * columns.size; }
};

void infer(const InferCtx& c) {
  expect_float(c, 0);
  expect_same_type(c, 0, 1);
  expect_rank(c, 0, 4);
  expect_rank(c, 1, 4);
  const Shape &x = c.in[0].shape, &filter = c.in[1].shape;
  check<ConfigError>(filter.known() && x[1] != Shape::kAny, "channels and filters must be known");
  const Plan plan(x, filter, c.attrs);
  check<ConfigError>(plan.channels == filter[1] * plan.groups && plan.filters % plan.groups == 0,
                     "filters ", filter, " in ", plan.groups, " groups do not fit ", x[1],
                     " channels");
  c.out = {{{x[0], plan.filters, plan.rows.count(), plan.columns.count()}, c.in[0].dtype}};
}

/// f(place in the matrix [taps, windows], place in the group's channels) for each that is no
/// padding.
template <class F>
void for_each_tap(const Plan& plan, F f) {
  const int64_t high = plan.rows.count(), wide = plan.columns.count();
  int64_t tap = 0;
  for (int64_t channel = 0; channel < plan.group_channels(); ++channel) {
    for (int64_t kr = 0; kr < plan.rows.kernel; ++kr) {
      for (int64_t kc = 0; kc < plan.columns.kernel; ++kc, ++tap) {
        for (int64_t i = 0; i < high; ++i) {
          const int64_t row = plan.rows.place(i, kr);
          if (row < 0 || row >= plan.rows.size) continue;
          for (int64_t j = 0; j < wide; ++j) {
            const int64_t column = plan.columns.place(j, kc);
            if (column < 0 || column >= plan.columns.size) continue;
            f((tap * high + i) * wide + j,
              (channel * plan.rows.size + row) * plan.columns.size + column);
          }
        }
      }
    }
  }
}

template <class T>
void unroll(const Plan& plan, const T* x, std::span<T> matrix) {
  std::ranges::fill(matrix, T{0});
  for_each_tap(plan, [&](int64_t to, int64_t from) { matrix[static_cast<size_t>(to)] = x[from]; });
}

template <class T>
std::span<T> matrix_of(const Plan& plan) {
  return scratch<T, struct UnrolledImage>(plan.taps() * plan.windows());
}

/// f(sample, group) for each.
template <class F>
void for_each_group(const Plan& plan, F f) {
  for (int64_t n = 0; n < plan.samples; ++n)
    for (int64_t g = 0; g < plan.groups; ++g) f(n * plan.groups + g, g);
}

void run(const RunCtx& c) {
  const Plan plan(c.in(0).shape(), c.in(1).shape(), c.attrs);
  const GemmSpec spec{.m = plan.group_filters(), .n = plan.windows(), .k = plan.taps()};
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *x = c.in(0).as<T>().data(), *filter = c.in(1).as<T>().data();
    T* y = c.out(0).as<T>().data();
    const std::span<T> matrix = matrix_of<T>(plan);
    for_each_group(plan, [&](int64_t at, int64_t group) {
      unroll(plan, x + at * plan.group_channels() * plan.pixels(), matrix);
      gemm(spec, filter + group * spec.m * spec.k, matrix.data(), nullptr,
           y + at * spec.m * spec.n);
    });
  });
}

void infer_like_first(const InferCtx& c) { c.out = {c.in[0]}; }

void run_grad_x(const RunCtx& c) {  // (x, filter, dy) -> dx
  const Plan plan(c.in(0).shape(), c.in(1).shape(), c.attrs);
  const GemmSpec spec{
      .m = plan.taps(), .n = plan.windows(), .k = plan.group_filters(), .trans_a = true};
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *filter = c.in(1).as<T>().data(), *dy = c.in(2).as<T>().data();
    std::ranges::fill(c.out(0).as<T>(), zero);
    T* dx = c.out(0).as<T>().data();
    const std::span<T> matrix = matrix_of<T>(plan);
    for_each_group(plan, [&](int64_t at, int64_t group) {
      gemm(spec, filter + group * spec.k * spec.m, dy + at * spec.k * spec.n, nullptr,
           matrix.data());
      T* to = dx + at * plan.group_channels() * plan.pixels();
      for_each_tap(plan, [&](int64_t from, int64_t place) {
        to[place] += matrix[static_cast<size_t>(from)];
      });
    });
  });
}

void run_grad_filter(const RunCtx& c) {  // (filter, x, dy) -> dfilter
  const Plan plan(c.in(1).shape(), c.in(0).shape(), c.attrs);
  const GemmSpec spec{
      .m = plan.group_filters(), .n = plan.taps(), .k = plan.windows(), .trans_b = true};
  by_float(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *x = c.in(1).as<T>().data(), *dy = c.in(2).as<T>().data();
    std::ranges::fill(c.out(0).as<T>(), zero);
    T* dfilter = c.out(0).as<T>().data();
    const std::span<T> matrix = matrix_of<T>(plan);
    const std::span<T> part = scratch<T, struct FilterGradient>(spec.m * spec.n);
    for_each_group(plan, [&](int64_t at, int64_t group) {
      unroll(plan, x + at * plan.group_channels() * plan.pixels(), matrix);
      gemm(spec, dy + at * spec.m * spec.k, matrix.data(), nullptr, part.data());
      T* to = dfilter + group * spec.m * spec.n;
      for (size_t i = 0; i < part.size(); ++i) to[i] += part[i];
    });
  });
}

std::vector<Var> grad(const GradCtx& c) {
  Var dx, dfilter;
  if (c.needs[0]) dx = c.g.apply("conv2d_grad_x", {c.in[0], c.in[1], c.dout[0]}, c.attrs);
  if (c.needs[1]) dfilter = c.g.apply("conv2d_grad_filter", {c.in[1], c.in[0], c.dout[0]}, c.attrs);
  return {dx, dfilter};
}

std::vector<OpExample> examples() {
  using List = std::vector<int64_t>;
  const Tensor x = random_tensor({2, 2, 5, 4});
  const std::vector<std::vector<VarType>> refused = {
      {{{2, 2, 5, 4}, DType::f64}, {{3, 1, 3, 3}, DType::f64}},
      {{{2, 2, 5, 4}, DType::f64}, {{3, 2, 6, 3}, DType::f64}},
      {{{2, 2, 5}, DType::f64}, {{3, 2, 3, 3}, DType::f64}}};
  return {{.in = {x, random_tensor({3, 2, 3, 2}, 2)}, .refused = refused},
          {.in = {x, random_tensor({3, 2, 3, 2}, 2)},
           .attrs = {{"strides", List{2, 1}}, {"paddings", List{1, 0, 1, 2}}}},
          {.in = {x, random_tensor({4, 1, 2, 2}, 2)},
           .attrs = {{"groups", int64_t{2}}, {"dilations", List{2, 1}}}}};
}

}  // namespace

std::vector<OpDef> conv2d() {
  return {{.name = "conv2d",
           .inputs = 2,
           .infer = infer,
           .run = run,
           .grad = grad,
           .examples = examples},
          {.name = "conv2d_grad_x",
           .inputs = 3,
           .shape_of = 0,
           .infer = infer_like_first,
           .run = run_grad_x},
          {.name = "conv2d_grad_filter",
           .inputs = 3,
           .shape_of = 0,
           .infer = infer_like_first,
           .run = run_grad_filter}};
}

}  // namespace argosy::ops

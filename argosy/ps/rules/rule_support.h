#pragma once

#include <cmath>
#include <cstddef>

#include "argosy/base/isa.h"
#include "argosy/device/algorithms.h"
#include "argosy/ps/rule.h"

namespace argosy::ps::rules {

/// Base of a rule that treats each row by itself. Its author writes one function,
///   auto row_step(const Update& update) const;
/// which computes what all rows of a step share and returns the step of one row,
///   [=](float* __restrict w, float* __restrict state, const float* __restrict g, size_t n) {...}
/// From it come the one-row form, and the form for many rows: one call, one choice of instruction
/// set, and loops of known length for the usual dimensions of embeddings.
template <class Self>
class RowRule : public Rule {
 public:
  void apply(std::span<float> weights, std::span<float> state, std::span<const float> grad,
             const Update& update) const final {
    const auto step = self().row_step(update);
    vectorized([=, w = weights.data(), s = state.data(), g = grad.data(), n = weights.size()] {
      step(w, s, g, n);
    });
  }

  void apply_rows(std::span<const RowStep> rows, size_t dim, const Update& update) const final {
    const auto step = self().row_step(update);
    switch (dim) {
      case 1:
        return run<1>(rows, step);
      case 8:
        return run<8>(rows, step);
      case 9:
        return run<9>(rows, step);
      case 10:
        return run<10>(rows, step);
      case 16:
        return run<16>(rows, step);
      case 32:
        return run<32>(rows, step);
      default:
        vectorized([=, &step] {
          for (const RowStep& row : rows) step(row.weights, row.weights + dim, row.grad, dim);
        });
    }
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }

  template <size_t kDim, class Step>
  static void run(std::span<const RowStep> rows, const Step& step) {
    vectorized([=, &step] {
      for (const RowStep& row : rows) step(row.weights, row.weights + kDim, row.grad, kDim);
    });
  }
};

/// The update of one weight on a device.
template <class Step, size_t kStates>
struct StepOnDevice {
  DeviceRows rows;
  Step step;
  ARGOSY_DEVICE void operator()(size_t at) const {
    const size_t r = at / rows.dim, i = at % rows.dim;
    const size_t slot = rows.slots != nullptr ? static_cast<size_t>(rows.slots[r]) : r;
    float* w = rows.weights + slot * rows.stride;
    float* state = w + rows.dim;
    if constexpr (kStates == 0) {
      step(w[i], rows.grads[at]);
    } else if constexpr (kStates == 1) {
      step(w[i], rows.grads[at], state[i]);
    } else {
      step(w[i], rows.grads[at], state[i], state[rows.dim + i]);
    }
  }
};

/// Base of a rule that treats each weight by itself, so that it also runs on devices. Its author
/// writes a Step, which changes one weight and its kStates (0 to 2) numbers of state,
///   ARGOSY_DEVICE void operator()(float& w, float g, float& state0, float& state1) const;
/// and the function that computes what all weights of a step share,
///   Step step(const Update& update) const;
template <class Self, class Step, size_t kStates>
class ElementRule : public RowRule<Self> {
 public:
  size_t state_size(size_t dim) const final { return kStates * dim; }

  auto row_step(const Update& update) const {
    return [step = self().step(update)](float* __restrict w, float* __restrict state,
                                        const float* __restrict g, size_t n) {
      if constexpr (kStates == 0) {
        for (size_t i = 0; i < n; ++i) step(w[i], g[i]);
      } else if constexpr (kStates == 1) {
        for (size_t i = 0; i < n; ++i) step(w[i], g[i], state[i]);
      } else {
        float* __restrict second = state + n;
        for (size_t i = 0; i < n; ++i) step(w[i], g[i], state[i], second[i]);
      }
    };
  }

  void apply_on_device(device::Stream& stream, const DeviceRows& rows,
                       const Update& update) const final {
    device::for_each_index(stream, rows.count * rows.dim,
                           StepOnDevice<Step, kStates>{rows, self().step(update)});
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

/// Adam's bias correction folded into two numbers, so that the loop over the weights has none:
/// m_hat / (sqrt(v_hat) + epsilon) = scale * m / (sqrt(v) + epsilon_t).
struct BiasCorrection {
  double scale, epsilon;
};
inline BiasCorrection bias_correction(double beta1, double beta2, double epsilon, uint64_t step) {
  const auto t = static_cast<double>(step);
  const double root = std::sqrt(1 - std::pow(beta2, t));
  return {root / (1 - std::pow(beta1, t)), epsilon * root};
}

/// Root of the sum of the squares of element(0) ... element(n - 1), which must be pure. The sum
/// runs in 16 lanes in double, so its bits depend on n and the values, not on the machine.
template <class Element>
double norm(size_t n, const Element& element) {
  constexpr size_t kLanes = 16;
  double lanes[kLanes] = {};
  vectorized([n, &element, &lanes] {
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const double x = element(i + lane);
        lanes[lane] += x * x;
      }
    }
    for (; i < n; ++i) {
      const double x = element(i);
      lanes[i % kLanes] += x * x;
    }
  });
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return std::sqrt(sum);
}

}  // namespace argosy::ps::rules

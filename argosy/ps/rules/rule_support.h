#pragma once

#include <cmath>
#include <cstddef>

#include "argosy/base/isa.h"
#include "argosy/ps/rule.h"

namespace argosy::rules {

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

}  // namespace argosy::rules

// lamb: m and v as adam ; r = m_hat / (sqrt(v_hat) + epsilon) + weight_decay w ;
//       w -= lr (|w| / |r|) r, with 1 for the quotient if a norm is 0, or without weight_decay
#include <cmath>

#include "argosy/base/arguments.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::ps::rules {
namespace {

class Lamb final : public Rule {
 public:
  explicit Lamb(const Call& spec)
      : beta1_(argument(spec, 0, "beta1", kBelowOne, 0.9)),
        beta2_(argument(spec, 1, "beta2", kBelowOne, 0.999)),
        epsilon_(argument(spec, 2, "epsilon", kPositive, 1e-6)),
        weight_decay_(static_cast<float>(argument(spec, 3, "weight_decay", kNotNegative, 0.01))) {}

  size_t state_size(size_t dim) const override { return 2 * dim; }
  bool whole_parameter() const override { return true; }
  void apply(std::span<float> weights, std::span<float> state, std::span<const float> grad,
             const Update& update) const override {
    const auto keep1 = static_cast<float>(beta1_), take1 = static_cast<float>(1 - beta1_);
    const auto keep2 = static_cast<float>(beta2_), take2 = static_cast<float>(1 - beta2_);
    const size_t n = weights.size();
    float* __restrict w = weights.data();
    float* __restrict m = state.data();
    float* __restrict v = m + n;
    const float* __restrict g = grad.data();
    vectorized([=] {
      for (size_t i = 0; i < n; ++i) {
        m[i] = keep1 * m[i] + take1 * g[i];
        v[i] = keep2 * v[i] + take2 * g[i] * g[i];
      }
    });

    // The direction is computed twice, for its norm and for the step, instead of stored.
    const auto correction = bias_correction(beta1_, beta2_, epsilon_, update.step);
    const auto scale = static_cast<float>(correction.scale);
    const auto epsilon = static_cast<float>(correction.epsilon);
    const auto direction = [=, decay = weight_decay_](size_t i) {
      return scale * m[i] / (std::sqrt(v[i]) + epsilon) + decay * w[i];
    };
    const double length = norm(n, [=](size_t i) { return w[i]; });
    const double stride = norm(n, direction);
    const double trust = weight_decay_ > 0 && length > 0 && stride > 0 ? length / stride : 1;
    const auto rate = static_cast<float>(update.lr * trust);
    vectorized([=] {
      for (size_t i = 0; i < n; ++i) w[i] -= rate * direction(i);
    });
  }

 private:
  double beta1_, beta2_, epsilon_;
  float weight_decay_;
};

}  // namespace

std::unique_ptr<Rule> lamb(const Call& spec) {
  spec.expect("rule", 4, {"beta1", "beta2", "epsilon", "weight_decay"});
  return std::make_unique<Lamb>(spec);
}

}  // namespace argosy::ps::rules

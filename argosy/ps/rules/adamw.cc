// adamw: w *= 1 - lr weight_decay, then as adam:
//        m = b1 m + (1 - b1) g ; v = b2 v + (1 - b2) g^2 ; w -= lr m_hat / (sqrt(v_hat) + epsilon)
#include <cmath>

#include "argosy/ps/arguments.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::rules {
namespace {

class AdamW final : public RowRule<AdamW> {
 public:
  explicit AdamW(const Call& spec)
      : beta1_(argument(spec, 0, "beta1", kBelowOne, 0.9)),
        beta2_(argument(spec, 1, "beta2", kBelowOne, 0.999)),
        epsilon_(argument(spec, 2, "epsilon", kPositive, 1e-8)),
        weight_decay_(argument(spec, 3, "weight_decay", kNotNegative, 0.01)) {}

  size_t state_size(size_t dim) const override { return 2 * dim; }
  auto row_step(const Update& update) const {
    const auto correction = bias_correction(beta1_, beta2_, epsilon_, update.step);
    const auto rate = static_cast<float>(update.lr * correction.scale);
    const auto epsilon = static_cast<float>(correction.epsilon);
    const auto shrink = static_cast<float>(1 - update.lr * weight_decay_);
    const auto keep1 = static_cast<float>(beta1_), take1 = static_cast<float>(1 - beta1_);
    const auto keep2 = static_cast<float>(beta2_), take2 = static_cast<float>(1 - beta2_);
    return [=](float* __restrict w, float* __restrict m, const float* __restrict g, size_t n) {
      float* __restrict v = m + n;
      for (size_t i = 0; i < n; ++i) {
        m[i] = keep1 * m[i] + take1 * g[i];
        v[i] = keep2 * v[i] + take2 * g[i] * g[i];
        w[i] = shrink * w[i] - rate * m[i] / (std::sqrt(v[i]) + epsilon);
      }
    };
  }

 private:
  double beta1_, beta2_, epsilon_, weight_decay_;
};

}  // namespace

std::unique_ptr<Rule> adamw(const Call& spec) {
  spec.expect("rule", 4, {"beta1", "beta2", "epsilon", "weight_decay"});
  return std::make_unique<AdamW>(spec);
}

}  // namespace argosy::rules

// adamw: w *= 1 - lr weight_decay, then as adam:
//        m = b1 m + (1 - b1) g ; v = b2 v + (1 - b2) g^2 ; w -= lr m_hat / (sqrt(v_hat) + epsilon)
#include <cmath>

#include "argosy/base/arguments.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::ps::rules {
namespace {

struct AdamWStep {
  float rate, epsilon, shrink, keep1, take1, keep2, take2;
  ARGOSY_DEVICE void operator()(float& w, float g, float& m, float& v) const {
    m = keep1 * m + take1 * g;
    v = keep2 * v + take2 * g * g;
    w = shrink * w - rate * m / (std::sqrt(v) + epsilon);
  }
};

class AdamW final : public ElementRule<AdamW, AdamWStep, 2> {
 public:
  explicit AdamW(const Call& spec)
      : beta1_(argument(spec, 0, "beta1", kBelowOne, 0.9)),
        beta2_(argument(spec, 1, "beta2", kBelowOne, 0.999)),
        epsilon_(argument(spec, 2, "epsilon", kPositive, 1e-8)),
        weight_decay_(argument(spec, 3, "weight_decay", kNotNegative, 0.01)) {}

  AdamWStep step(const Update& update) const {
    const auto correction = bias_correction(beta1_, beta2_, epsilon_, update.step);
    return {.rate = static_cast<float>(update.lr * correction.scale),
            .epsilon = static_cast<float>(correction.epsilon),
            .shrink = static_cast<float>(1 - update.lr * weight_decay_),
            .keep1 = static_cast<float>(beta1_),
            .take1 = static_cast<float>(1 - beta1_),
            .keep2 = static_cast<float>(beta2_),
            .take2 = static_cast<float>(1 - beta2_)};
  }

 private:
  double beta1_, beta2_, epsilon_, weight_decay_;
};

}  // namespace

std::unique_ptr<Rule> adamw(const Call& spec) {
  spec.expect("rule", 4, {"beta1", "beta2", "epsilon", "weight_decay"});
  return std::make_unique<AdamW>(spec);
}

}  // namespace argosy::ps::rules

// adam: m = b1 m + (1 - b1) g ; v = b2 v + (1 - b2) g^2 ;
//       w -= lr m_hat / (sqrt(v_hat) + epsilon), m_hat = m / (1 - b1^t), v_hat = v / (1 - b2^t)
// lead=1: t runs one step ahead, as it does in Paddle on a CPU for rows, not for dense weights.
#include <cmath>

#include "argosy/base/arguments.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::ps::rules {
namespace {

struct AdamStep {
  float rate, epsilon, keep1, take1, keep2, take2;
  ARGOSY_DEVICE void operator()(float& w, float g, float& m, float& v) const {
    m = keep1 * m + take1 * g;
    v = keep2 * v + take2 * g * g;
    w -= rate * m / (std::sqrt(v) + epsilon);
  }
};

class Adam final : public ElementRule<Adam, AdamStep, 2> {
 public:
  explicit Adam(const Call& spec)
      : beta1_(argument(spec, 0, "beta1", kBelowOne, 0.9)),
        beta2_(argument(spec, 1, "beta2", kBelowOne, 0.999)),
        epsilon_(argument(spec, 2, "epsilon", kPositive, 1e-8)),
        lead_(whole_argument(spec, 3, "lead", kSwitch, 0)) {}

  AdamStep step(const Update& update) const {
    const auto correction = bias_correction(beta1_, beta2_, epsilon_, update.step + lead_);
    return {.rate = static_cast<float>(update.lr * correction.scale),
            .epsilon = static_cast<float>(correction.epsilon),
            .keep1 = static_cast<float>(beta1_),
            .take1 = static_cast<float>(1 - beta1_),
            .keep2 = static_cast<float>(beta2_),
            .take2 = static_cast<float>(1 - beta2_)};
  }

 private:
  double beta1_, beta2_, epsilon_;
  uint64_t lead_;
};

}  // namespace

std::unique_ptr<Rule> adam(const Call& spec) {
  spec.expect("rule", 4, {"beta1", "beta2", "epsilon", "lead"});
  return std::make_unique<Adam>(spec);
}

}  // namespace argosy::ps::rules

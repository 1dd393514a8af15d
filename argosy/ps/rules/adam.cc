// adam: m = b1 m + (1 - b1) g ; v = b2 v + (1 - b2) g^2 ;
//       w -= lr m_hat / (sqrt(v_hat) + epsilon), m_hat = m / (1 - b1^t), v_hat = v / (1 - b2^t)
// lead=1: t runs one step ahead, as it does in Paddle on a CPU for rows, not for dense weights.
#include <cmath>

#include "argosy/ps/arguments.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::rules {
namespace {

class Adam final : public RowRule<Adam> {
 public:
  explicit Adam(const Call& spec)
      : beta1_(argument(spec, 0, "beta1", kBelowOne, 0.9)),
        beta2_(argument(spec, 1, "beta2", kBelowOne, 0.999)),
        epsilon_(argument(spec, 2, "epsilon", kPositive, 1e-8)),
        lead_(whole_argument(spec, 3, "lead", kSwitch, 0)) {}

  size_t state_size(size_t dim) const override { return 2 * dim; }
  auto row_step(const Update& update) const {
    const auto correction = bias_correction(beta1_, beta2_, epsilon_, update.step + lead_);
    const auto rate = static_cast<float>(update.lr * correction.scale);
    const auto epsilon = static_cast<float>(correction.epsilon);
    const auto keep1 = static_cast<float>(beta1_), take1 = static_cast<float>(1 - beta1_);
    const auto keep2 = static_cast<float>(beta2_), take2 = static_cast<float>(1 - beta2_);
    return [=](float* __restrict w, float* __restrict m, const float* __restrict g, size_t n) {
      float* __restrict v = m + n;
      for (size_t i = 0; i < n; ++i) {
        m[i] = keep1 * m[i] + take1 * g[i];
        v[i] = keep2 * v[i] + take2 * g[i] * g[i];
        w[i] -= rate * m[i] / (std::sqrt(v[i]) + epsilon);
      }
    };
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

}  // namespace argosy::rules

// lars: rate = lr coeff |w| / (|g| + weight_decay |w| + epsilon), or lr if |w| or |g| is 0, or
//       without weight_decay ;
//       v = mu v + rate (g + weight_decay w) ; w -= v
#include "argosy/base/arguments.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::ps::rules {
namespace {

class Lars final : public Rule {
 public:
  explicit Lars(const Call& spec)
      : mu_(static_cast<float>(argument(spec, 0, "mu", kBelowOne, 0.9))),
        coeff_(argument(spec, 1, "coeff", kPositive, 0.001)),
        weight_decay_(argument(spec, 2, "weight_decay", kNotNegative, 0.0005)),
        epsilon_(argument(spec, 3, "epsilon", kNotNegative, 0)) {}

  size_t state_size(size_t dim) const override { return dim; }
  bool whole_parameter() const override { return true; }
  void apply(std::span<float> weights, std::span<float> state, std::span<const float> grad,
             const Update& update) const override {
    const size_t n = weights.size();
    float* __restrict w = weights.data();
    float* __restrict v = state.data();
    const float* __restrict g = grad.data();
    const double length = norm(n, [=](size_t i) { return w[i]; });
    const double slope = norm(n, [=](size_t i) { return g[i]; });
    const double ratio = coeff_ * length / (slope + weight_decay_ * length + epsilon_);
    const bool adapts = weight_decay_ > 0 && length > 0 && slope > 0;
    const auto rate = static_cast<float>(update.lr * (adapts ? ratio : 1));
    vectorized([=, mu = mu_, decay = static_cast<float>(weight_decay_)] {
      for (size_t i = 0; i < n; ++i) {
        v[i] = mu * v[i] + rate * (g[i] + decay * w[i]);
        w[i] -= v[i];
      }
    });
  }

 private:
  float mu_;
  double coeff_, weight_decay_, epsilon_;
};

}  // namespace

std::unique_ptr<Rule> lars(const Call& spec) {
  spec.expect("rule", 4, {"mu", "coeff", "weight_decay", "epsilon"});
  return std::make_unique<Lars>(spec);
}

}  // namespace argosy::ps::rules

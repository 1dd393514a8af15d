// momentum: v = mu v + g ; w -= lr v, or with nesterov w -= lr (g + mu v)
#include "argosy/ps/arguments.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::rules {
namespace {

class Momentum final : public RowRule<Momentum> {
 public:
  explicit Momentum(const Call& spec)
      : mu_(static_cast<float>(argument(spec, 0, "mu", kBelowOne, 0.9))),
        nesterov_(whole_argument(spec, 1, "nesterov", kSwitch, 0) == 1) {}

  size_t state_size(size_t dim) const override { return dim; }
  auto row_step(const Update& update) const {
    return [lr = update.lr, mu = mu_, nesterov = nesterov_](
               float* __restrict w, float* __restrict v, const float* __restrict g, size_t n) {
      for (size_t i = 0; i < n; ++i) {
        v[i] = mu * v[i] + g[i];
        w[i] -= lr * (nesterov ? g[i] + mu * v[i] : v[i]);
      }
    };
  }

 private:
  float mu_;
  bool nesterov_;
};

}  // namespace

std::unique_ptr<Rule> momentum(const Call& spec) {
  spec.expect("rule", 2, {"mu", "nesterov"});
  return std::make_unique<Momentum>(spec);
}

}  // namespace argosy::rules

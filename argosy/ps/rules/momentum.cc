// momentum: v = mu v + g ; w -= lr v, or with nesterov w -= lr (g + mu v)
#include "argosy/base/arguments.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::ps::rules {
namespace {

struct MomentumStep {
  float lr, mu;
  bool nesterov;
  ARGOSY_DEVICE void operator()(float& w, float g, float& v) const {
    v = mu * v + g;
    w -= lr * (nesterov ? g + mu * v : v);
  }
};

class Momentum final : public ElementRule<Momentum, MomentumStep, 1> {
 public:
  explicit Momentum(const Call& spec)
      : mu_(static_cast<float>(argument(spec, 0, "mu", kBelowOne, 0.9))),
        nesterov_(whole_argument(spec, 1, "nesterov", kSwitch, 0) == 1) {}

  MomentumStep step(const Update& update) const { return {update.lr, mu_, nesterov_}; }

 private:
  float mu_;
  bool nesterov_;
};

}  // namespace

std::unique_ptr<Rule> momentum(const Call& spec) {
  spec.expect("rule", 2, {"mu", "nesterov"});
  return std::make_unique<Momentum>(spec);
}

}  // namespace argosy::ps::rules

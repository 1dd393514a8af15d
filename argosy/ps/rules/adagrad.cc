// adagrad: G += g^2 ; w -= lr g / (sqrt(G) + epsilon)
#include <algorithm>
#include <cmath>

#include "argosy/base/arguments.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::ps::rules {
namespace {

struct AdagradStep {
  float lr, epsilon;
  ARGOSY_DEVICE void operator()(float& w, float g, float& sum) const {
    sum += g * g;
    w -= lr * g / (std::sqrt(sum) + epsilon);
  }
};

class Adagrad final : public ElementRule<Adagrad, AdagradStep, 1> {
 public:
  explicit Adagrad(const Call& spec)
      : epsilon_(static_cast<float>(argument(spec, 0, "epsilon", kPositive, 1e-6))),
        first_(static_cast<float>(argument(spec, 1, "initial_accumulator", kNotNegative, 0))) {}

  void init(std::span<float> state) const override { std::ranges::fill(state, first_); }
  AdagradStep step(const Update& update) const { return {update.lr, epsilon_}; }

 private:
  float epsilon_, first_;
};

}  // namespace

std::unique_ptr<Rule> adagrad(const Call& spec) {
  spec.expect("rule", 2, {"epsilon", "initial_accumulator"});
  return std::make_unique<Adagrad>(spec);
}

}  // namespace argosy::ps::rules

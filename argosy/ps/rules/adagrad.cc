// adagrad: G += g^2 ; w -= lr g / (sqrt(G) + epsilon)
#include <algorithm>
#include <cmath>

#include "argosy/ps/arguments.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::rules {
namespace {

class Adagrad final : public RowRule<Adagrad> {
 public:
  explicit Adagrad(const Call& spec)
      : epsilon_(static_cast<float>(argument(spec, 0, "epsilon", kPositive, 1e-6))),
        first_(static_cast<float>(argument(spec, 1, "initial_accumulator", kNotNegative, 0))) {}

  size_t state_size(size_t dim) const override { return dim; }
  void init(std::span<float> state) const override { std::ranges::fill(state, first_); }
  auto row_step(const Update& update) const {
    return [lr = update.lr, epsilon = epsilon_](float* __restrict w, float* __restrict sum,
                                                const float* __restrict g, size_t n) {
      for (size_t i = 0; i < n; ++i) {
        sum[i] += g[i] * g[i];
        w[i] -= lr * g[i] / (std::sqrt(sum[i]) + epsilon);
      }
    };
  }

 private:
  float epsilon_, first_;
};

}  // namespace

std::unique_ptr<Rule> adagrad(const Call& spec) {
  spec.expect("rule", 2, {"epsilon", "initial_accumulator"});
  return std::make_unique<Adagrad>(spec);
}

}  // namespace argosy::rules

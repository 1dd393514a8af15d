// sgd: w -= lr g
#include "argosy/base/call.h"
#include "argosy/base/isa.h"
#include "argosy/ps/rule.h"

namespace argosy::rules {
namespace {

struct Sgd final : Rule {
  size_t state_size(size_t) const override { return 0; }
  void apply(std::span<float> weights, std::span<float>, std::span<const float> grad,
             const Update& update) const override {
    float* __restrict w = weights.data();
    const float* __restrict g = grad.data();
    vectorized([=, n = weights.size(), lr = update.lr] {
      for (size_t i = 0; i < n; ++i) w[i] -= lr * g[i];
    });
  }
};

}  // namespace

std::unique_ptr<Rule> sgd(const Call& spec) {
  spec.expect("rule", 0, {});
  return std::make_unique<Sgd>();
}

}  // namespace argosy::rules

// add: w += lr g, for sums and for differences of weights
#include "argosy/base/call.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::rules {
namespace {

struct Add final : RowRule<Add> {
  size_t state_size(size_t) const override { return 0; }
  auto row_step(const Update& update) const {
    return [lr = update.lr](float* __restrict w, float*, const float* __restrict g, size_t n) {
      for (size_t i = 0; i < n; ++i) w[i] += lr * g[i];
    };
  }
};

}  // namespace

std::unique_ptr<Rule> add(const Call& spec) {
  spec.expect("rule", 0, {});
  return std::make_unique<Add>();
}

}  // namespace argosy::rules

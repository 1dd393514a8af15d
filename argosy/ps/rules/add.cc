// add: w += lr g, for sums and for differences of weights
#include "argosy/base/call.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::ps::rules {
namespace {

struct AddStep {
  float lr;
  ARGOSY_DEVICE void operator()(float& w, float g) const { w += lr * g; }
};

struct Add final : ElementRule<Add, AddStep, 0> {
  AddStep step(const Update& update) const { return {update.lr}; }
};

}  // namespace

std::unique_ptr<Rule> add(const Call& spec) {
  spec.expect("rule", 0, {});
  return std::make_unique<Add>();
}

}  // namespace argosy::ps::rules

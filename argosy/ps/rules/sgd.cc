// sgd: w -= lr g
#include "argosy/base/call.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::ps::rules {
namespace {

struct SgdStep {
  float lr;
  ARGOSY_DEVICE void operator()(float& w, float g) const { w -= lr * g; }
};

struct Sgd final : ElementRule<Sgd, SgdStep, 0> {
  SgdStep step(const Update& update) const { return {update.lr}; }
};

}  // namespace

std::unique_ptr<Rule> sgd(const Call& spec) {
  spec.expect("rule", 0, {});
  return std::make_unique<Sgd>();
}

}  // namespace argosy::ps::rules

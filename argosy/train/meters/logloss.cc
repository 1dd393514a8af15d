// logloss: the mean of -log(p) for clicks and -log(1 - p) for others, natural logarithm.
//   logloss(epsilon=1e-7)   p is kept within [epsilon, 1 - epsilon], so one sure mistake is finite
#include <algorithm>
#include <cmath>

#include "argosy/base/arguments.h"
#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

class LogLoss final : public RatioMeter<LogLoss> {
 public:
  static constexpr std::string_view kName = "logloss";
  static constexpr Predictions kPredictions = Predictions::probabilities;
  static constexpr bool kSkipsNegativeLabels = true;

  explicit LogLoss(double epsilon) : epsilon_(epsilon) {}

  Ratio terms(float prediction, float label) const {
    const double p = std::clamp(static_cast<double>(prediction), epsilon_, 1 - epsilon_);
    return {-std::log(label > 0 ? p : 1 - p), 1.0};
  }
  double setting() const { return epsilon_; }

 private:
  double epsilon_;
};

}  // namespace

std::unique_ptr<Meter> logloss(const Call& spec) {
  spec.expect("meter", 1, {"epsilon"});
  constexpr Bounds kEpsilon{1e-15, 0.1, "a number from 1e-15 to 0.1"};
  return std::make_unique<LogLoss>(argument(spec, 0, "epsilon", kEpsilon, 1e-7));
}

}  // namespace argosy::meters

// rmse: the root of the mean of (prediction - label)^2. For labels of any kind: none is left out.
#include <cmath>

#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

class Rmse final : public RatioMeter<Rmse> {
 public:
  static constexpr std::string_view kName = "rmse";
  static constexpr Predictions kPredictions = Predictions::numbers;
  static constexpr bool kSkipsNegativeLabels = false;

  Ratio terms(float prediction, float label) const {
    const double error = static_cast<double>(prediction) - label;
    return {error * error, 1.0};
  }
  double value() const override { return std::sqrt(RatioMeter::value()); }
};

}  // namespace

std::unique_ptr<Meter> rmse(const Call& spec) {
  spec.expect("meter", 0, {});
  return std::make_unique<Rmse>();
}

}  // namespace argosy::meters

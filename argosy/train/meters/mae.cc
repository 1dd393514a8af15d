// mae: the mean of |prediction - label|. For labels of any kind: none is left out.
#include <cmath>

#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

class Mae final : public RatioMeter<Mae> {
 public:
  static constexpr std::string_view kName = "mae";
  static constexpr Predictions kPredictions = Predictions::numbers;
  static constexpr bool kSkipsNegativeLabels = false;

  Ratio terms(float prediction, float label) const {
    return {std::abs(static_cast<double>(prediction) - label), 1.0};
  }
};

}  // namespace

std::unique_ptr<Meter> mae(const Call& spec) {
  spec.expect("meter", 0, {});
  return std::make_unique<Mae>();
}

}  // namespace argosy::meters

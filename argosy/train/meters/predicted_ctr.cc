// predicted_ctr: the mean prediction.
#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

class PredictedCtr final : public RatioMeter<PredictedCtr> {
 public:
  static constexpr std::string_view kName = "predicted_ctr";
  static constexpr Predictions kPredictions = Predictions::probabilities;
  static constexpr bool kSkipsNegativeLabels = true;

  Ratio terms(float prediction, float /*label*/) const { return {prediction, 1.0}; }
};

}  // namespace

std::unique_ptr<Meter> predicted_ctr(const Call& spec) {
  spec.expect("meter", 0, {});
  return std::make_unique<PredictedCtr>();
}

}  // namespace argosy::meters

// copc: clicks over predicted clicks. Above 1 a model predicts too little, below 1 too much.
// Not-a-number while no click is predicted at all.
#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

class Copc final : public RatioMeter<Copc> {
 public:
  static constexpr std::string_view kName = "copc";
  static constexpr Predictions kPredictions = Predictions::probabilities;
  static constexpr bool kSkipsNegativeLabels = true;

  Ratio terms(float prediction, float label) const { return {label > 0 ? 1.0 : 0.0, prediction}; }
};

}  // namespace

std::unique_ptr<Meter> copc(const Call& spec) {
  spec.expect("meter", 0, {});
  return std::make_unique<Copc>();
}

}  // namespace argosy::meters

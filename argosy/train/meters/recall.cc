// recall: the share of the clicks that were predicted as clicks.
//   recall(threshold=0.5)   a prediction of at least that says click
#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

class Recall final : public RatioMeter<Recall> {
 public:
  static constexpr std::string_view kName = "recall";
  static constexpr Predictions kPredictions = Predictions::probabilities;
  static constexpr bool kSkipsNegativeLabels = true;

  explicit Recall(float threshold) : threshold_(threshold) {}

  Ratio terms(float prediction, float label) const {
    const bool predicted = prediction >= threshold_, clicked = label > 0;
    return {predicted && clicked ? 1.0 : 0.0, clicked ? 1.0 : 0.0};
  }
  double setting() const { return threshold_; }

 private:
  float threshold_;
};

}  // namespace

std::unique_ptr<Meter> recall(const Call& spec) {
  spec.expect("meter", 1, {"threshold"});
  return std::make_unique<Recall>(threshold_of(spec));
}

}  // namespace argosy::meters

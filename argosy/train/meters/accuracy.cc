// accuracy: the share of instances decided rightly.
//   accuracy(threshold=0.5)   a prediction of at least that says click
#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

class Accuracy final : public RatioMeter<Accuracy> {
 public:
  static constexpr std::string_view kName = "accuracy";
  static constexpr Predictions kPredictions = Predictions::probabilities;
  static constexpr bool kSkipsNegativeLabels = true;

  explicit Accuracy(float threshold) : threshold_(threshold) {}

  Ratio terms(float prediction, float label) const {
    const bool predicted = prediction >= threshold_, clicked = label > 0;
    return {predicted == clicked ? 1.0 : 0.0, 1.0};
  }
  double setting() const { return threshold_; }

 private:
  float threshold_;
};

}  // namespace

std::unique_ptr<Meter> accuracy(const Call& spec) {
  spec.expect("meter", 1, {"threshold"});
  return std::make_unique<Accuracy>(threshold_of(spec));
}

}  // namespace argosy::meters

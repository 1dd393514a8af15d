// precision: the share of clicks among the instances predicted as clicks.
//   precision(threshold=0.5)   a prediction of at least that says click
#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

class Precision final : public RatioMeter<Precision> {
 public:
  static constexpr std::string_view kName = "precision";
  static constexpr Predictions kPredictions = Predictions::probabilities;
  static constexpr bool kSkipsNegativeLabels = true;

  explicit Precision(float threshold) : threshold_(threshold) {}

  Ratio terms(float prediction, float label) const {
    const bool predicted = prediction >= threshold_, clicked = label > 0;
    return {predicted && clicked ? 1.0 : 0.0, predicted ? 1.0 : 0.0};
  }
  double setting() const { return threshold_; }

 private:
  float threshold_;
};

}  // namespace

std::unique_ptr<Meter> precision(const Call& spec) {
  spec.expect("meter", 1, {"threshold"});
  return std::make_unique<Precision>(threshold_of(spec));
}

}  // namespace argosy::meters

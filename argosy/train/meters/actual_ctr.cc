// actual_ctr: clicks per instance.
#include "argosy/train/meters/meter_support.h"

namespace argosy::meters {
namespace {

class ActualCtr final : public RatioMeter<ActualCtr> {
 public:
  static constexpr std::string_view kName = "actual_ctr";
  static constexpr Predictions kPredictions = Predictions::probabilities;
  static constexpr bool kSkipsNegativeLabels = true;

  Ratio terms(float /*prediction*/, float label) const { return {label > 0 ? 1.0 : 0.0, 1.0}; }
};

}  // namespace

std::unique_ptr<Meter> actual_ctr(const Call& spec) {
  spec.expect("meter", 0, {});
  return std::make_unique<ActualCtr>();
}

}  // namespace argosy::meters

#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace argosy {

/// What happens to a row's gradient before its rule: clip by value, then weight decay, in that
/// order, as servers and local training both do it. Clip by norm needs the worker's whole gradient
/// and is done there.
class GradientPolicy {
 public:
  /// regularizer: "", "l1(0.01)" or "l2(0.01)"; clip: "", "value(1)" or "value(-1, 2)".
  GradientPolicy(std::string_view regularizer, std::string_view clip);

  /// False if apply() would change nothing.
  bool active() const { return clip_ || l1_ != 0 || l2_ != 0; }
  /// grad = clip(grad), then + l2 * w + l1 * sign(w).
  void apply(std::span<const float> w, std::span<float> grad) const;

 private:
  struct Range {
    float low, high;
  };
  std::optional<Range> clip_;
  float l1_ = 0, l2_ = 0;
};

}  // namespace argosy

#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace argosy::ps {

/// Applied to a gradient before its rule, on servers and in local training alike: clip by value,
/// then weight decay. Clip by norm needs the whole gradient and happens on the worker.
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

}  // namespace argosy::ps

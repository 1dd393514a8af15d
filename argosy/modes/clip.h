#pragma once

#include <span>
#include <string>
#include <vector>

namespace argosy {

/// Clips a worker's own gradients before they are pushed: norm(x) scales each parameter's gradient
/// whose norm exceeds x, global_norm(x) scales all of them by their norm together.
class NormClip {
 public:
  explicit NormClip(const std::string& text);  // "" does nothing; make_plan has checked it

  /// Replaces spans by scaled copies where something must be scaled. The copies live in this
  /// object until the next call.
  void apply(std::span<std::span<const float>> grads);

 private:
  std::span<const float> scaled(size_t index, std::span<const float> grad, double factor);

  enum class Kind { none, each, together } kind_ = Kind::none;
  double limit_ = 0;
  std::vector<std::vector<float>> copies_;
};

/// Sum of squares, in an order that depends on the size only.
double squared_norm(std::span<const float> values);

}  // namespace argosy

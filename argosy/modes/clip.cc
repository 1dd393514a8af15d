#include "argosy/modes/clip.h"

#include <cmath>

#include "argosy/base/call.h"
#include "argosy/base/isa.h"

namespace argosy {

double squared_norm(std::span<const float> values) {
  constexpr size_t kLanes = 16;
  double total = 0;
  vectorized([&total, x = values.data(), n = values.size()] {
    double lanes[kLanes] = {};
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const auto value = static_cast<double>(x[i + lane]);
        lanes[lane] += value * value;
      }
    for (size_t lane = 0; i + lane < n; ++lane) {
      const auto value = static_cast<double>(x[i + lane]);
      lanes[lane] += value * value;
    }
    for (double lane : lanes) total += lane;
  });
  return total;
}

NormClip::NormClip(const std::string& text) {
  if (text.empty()) return;
  const Call call(text);
  kind_ = call.name() == "norm" ? Kind::each : Kind::together;
  limit_ = call.number(0, "limit");
}

void NormClip::apply(std::span<std::span<const float>> grads) {
  if (kind_ == Kind::none) return;
  double total = 0;
  for (size_t i = 0; i < grads.size(); ++i) {
    const double square = squared_norm(grads[i]);
    total += square;
    if (kind_ == Kind::each && square > limit_ * limit_)
      grads[i] = scaled(i, grads[i], limit_ / std::sqrt(square));
  }
  if (kind_ == Kind::each || total <= limit_ * limit_) return;
  for (size_t i = 0; i < grads.size(); ++i)
    grads[i] = scaled(i, grads[i], limit_ / std::sqrt(total));
}

std::span<const float> NormClip::scaled(size_t index, std::span<const float> grad, double factor) {
  if (copies_.size() <= index) copies_.resize(index + 1);
  std::vector<float>& copy = copies_[index];
  copy.resize(grad.size());
  vectorized(
      [from = grad.data(), to = copy.data(), n = grad.size(), f = static_cast<float>(factor)] {
        for (size_t i = 0; i < n; ++i) to[i] = from[i] * f;
      });
  return copy;
}

}  // namespace argosy

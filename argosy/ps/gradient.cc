#include "argosy/ps/gradient.h"

#include <cassert>
#include <vector>

#include "argosy/base/arguments.h"
#include "argosy/base/isa.h"

namespace argosy::ps {

GradientPolicy::GradientPolicy(std::string_view regularizer, std::string_view clip) {
  if (!regularizer.empty()) {
    const Call call(regularizer);
    check<ConfigError>(call.name() == "l1" || call.name() == "l2", "'", regularizer,
                       "': no such regularizer, expected l1(x) or l2(x)");
    call.expect("regularizer", 1, {"coefficient"});
    float& coefficient = call.name() == "l1" ? l1_ : l2_;
    coefficient = static_cast<float>(argument(call, 0, "coefficient", kNotNegative));
  }
  if (!clip.empty()) {
    const Call call(clip);
    check<ConfigError>(call.name() == "value", "'", clip,
                       "': no such clip, expected value(x) or value(low, high)");
    call.expect("clip", 2, {});
    const bool symmetric = call.numbers().size() < 2;
    const double high = argument(call, symmetric ? 0 : 1, "high", kFinite);
    const double low = symmetric ? -high : argument(call, 0, "low", kFinite);
    check<ConfigError>(low < high, "'", clip, "': clips to ", low, " ... ", high,
                       ", expected low below high");
    clip_ = Range{static_cast<float>(low), static_cast<float>(high)};
  }
}

void GradientPolicy::apply(std::span<const float> weights, std::span<float> grad) const {
  assert(weights.size() == grad.size());
  const size_t n = grad.size();
  const float* __restrict w = weights.data();
  float* __restrict g = grad.data();
  if (clip_) {
    // Comparisons in this order let not-a-number through, for the rule and its user to notice.
    vectorized([=, low = clip_->low, high = clip_->high] {
      for (size_t i = 0; i < n; ++i) {
        const float above = g[i] < low ? low : g[i];
        g[i] = above > high ? high : above;
      }
    });
  }
  if (l2_ != 0) {
    vectorized([=, l2 = l2_] {
      for (size_t i = 0; i < n; ++i) g[i] += l2 * w[i];
    });
  }
  if (l1_ != 0) {
    vectorized([=, l1 = l1_] {
      for (size_t i = 0; i < n; ++i) g[i] += l1 * static_cast<float>((w[i] > 0) - (w[i] < 0));
    });
  }
}

}  // namespace argosy::ps

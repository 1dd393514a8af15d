// ftrl: n' = n + g^2 ; z += g - (n'^-p - n^-p) / lr w, p = lr_power ;
//       w = |z| > l1 ? (l1 sign(z) - z) / (n'^-p / lr + 2 l2) : 0
#include <cmath>

#include "argosy/base/arguments.h"
#include "argosy/ps/rules/rule_support.h"

namespace argosy::ps::rules {
namespace {

constexpr Bounds kNotPositive{-kLargest, 0, "a number of at most 0"};
constexpr double kTiny = 1e-10;  // added to l1 and l2, as Paddle does: no division by 0

class Ftrl final : public RowRule<Ftrl> {
 public:
  explicit Ftrl(const Call& spec)
      : l1_(static_cast<float>(argument(spec, 0, "l1", kNotNegative, 0) + kTiny)),
        l2_(static_cast<float>(argument(spec, 1, "l2", kNotNegative, 0) + kTiny)),
        power_(static_cast<float>(-argument(spec, 2, "lr_power", kNotPositive, -0.5))) {}

  size_t state_size(size_t dim) const override { return 2 * dim; }
  auto row_step(const Update& update) const {
    return
        [lr = update.lr, l1 = l1_, l2 = l2_, power = power_](
            float* __restrict w, float* __restrict squares, const float* __restrict g, size_t n) {
          if (lr == 0) return;  // where a schedule starts or ends: the limit is no change of w
          float* __restrict linear = squares + n;
          const auto loop = [=](auto raised) {
            for (size_t i = 0; i < n; ++i) {
              const float before = raised(squares[i]);
              squares[i] += g[i] * g[i];
              const float after = raised(squares[i]);
              const float z = linear[i] + (g[i] - (after - before) / lr * w[i]);
              const float shrunk = (z > 0 ? l1 : -l1) - z;
              linear[i] = z;
              w[i] = std::abs(z) > l1 ? shrunk / (after / lr + 2 * l2) : 0.0F;
            }
          };
          if (power == 0.5F)
            loop([](float x) { return std::sqrt(x); });
          else
            loop([=](float x) { return std::pow(x, power); });
        };
  }

 private:
  float l1_, l2_, power_;
};

}  // namespace

std::unique_ptr<Rule> ftrl(const Call& spec) {
  spec.expect("rule", 3, {"l1", "l2", "lr_power"});
  return std::make_unique<Ftrl>(spec);
}

}  // namespace argosy::ps::rules

#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace argosy::ps {

/// Learning rate as a pure function of the step (the first is 1), so that servers compute it
/// without being told. Written as
///   0.1 or constant(0.1)
///   piecewise(0.1, 1000, 0.01, 5000, 0.001)        rate, until step, rate, until step, rate
///   exponential(0.1, steps=1000, factor=0.9, staircase=0)
///   polynomial(0.1, steps=10000, end=0.0001, power=1, cycle=0)
///   cosine(0.1, steps=10000, end=0)
///   step(0.1, steps=3000, factor=0.1)
/// each perhaps behind "linear_warmup(steps=500, start=0) then ", which climbs from start to the
/// rate the rest begins with and then hands over, the rest counting from its own step 1.
class Schedule {
 public:
  /// Throws ConfigError that quotes the text.
  explicit Schedule(std::string_view text);
  float rate(uint64_t step) const;

 private:
  std::function<double(uint64_t)> rate_;  // of the steps already done: 0 at step 1
};

}  // namespace argosy::ps

#pragma once

#include "argosy/base/rng.h"

namespace argosy {

/// Draws one number after the other.
class Dice {
 public:
  explicit Dice(uint64_t seed, uint64_t sub) : random_(seed, sub) {}
  uint64_t bits() { return random_.bits(next_++); }
  uint64_t below(uint64_t n) { return random_.below(next_++, n); }
  bool hit(double probability) { return random_.uniform(next_++) < probability; }

 private:
  RandomStream random_;
  uint64_t next_ = 0;
};

}  // namespace argosy

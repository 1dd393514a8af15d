#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace argosy {

/// A worker's progress through its data: a pass and its batches. Pushes carry it, so that servers
/// can tell a restarted process which of its data they have.
struct Trained {
  uint64_t pass = 0, batches = 0;  // batches of this pass; the first pass is 1
  uint64_t steps = 0;              // batches of all passes

  friend auto operator<=>(const Trained& a, const Trained& b) {
    if (const auto order = a.pass <=> b.pass; order != 0) return order;
    return a.batches <=> b.batches;
  }
  friend bool operator==(const Trained& a, const Trained& b) { return (a <=> b) == 0; }

  template <class A>
  void fields(A& a) {
    a(pass, batches, steps);
  }
};

}  // namespace argosy

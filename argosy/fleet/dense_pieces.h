#pragma once

#include <string>
#include <vector>

#include "argosy/ps/placement.h"

namespace argosy {

/// Floats that lie together in a server's dense state, and where they are in a whole tensor.
struct DensePiece {
  size_t table = 0;
  bool is_state = false;  // of the optimizer; otherwise weights
  size_t begin = 0, size = 0;

  /// Of the whole tensor in saves: "w" or "w@state".
  std::string name(const Placement& placement) const;
};

/// All that the verbs dense and set_dense carry behind the step, in their order.
std::vector<DensePiece> dense_pieces(const Placement& placement, uint32_t server);

}  // namespace argosy

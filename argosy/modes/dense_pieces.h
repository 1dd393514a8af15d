#pragma once

#include <string>
#include <vector>

#include "argosy/ps/placement.h"

namespace argosy {

/// Floats that are adjacent in a server's dense state, and their place in the whole tensor.
struct DensePiece {
  size_t parameter = 0;
  bool is_state = false;  // of the optimizer; otherwise weights
  size_t begin = 0, size = 0;

  /// The whole tensor's name in saves: "w" or "w@state".
  std::string name(const ps::Placement& placement) const;
};

/// The pieces of ReadParameters and WriteParameters, in order.
std::vector<DensePiece> dense_pieces(const ps::Placement& placement, uint32_t server);

}  // namespace argosy

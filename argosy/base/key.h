#pragma once

#include <cstdint>

namespace argosy {

/// The number of a row in its table.
using Key = uint64_t;

}  // namespace argosy

#pragma once

#include <cstdint>
#include <vector>

namespace argosy {

using Key = uint64_t;

/// Some rows of one table: the unit of pull and of push, in memory and on the wire.
/// values is empty (a request) or holds keys.size() * dim floats.
struct Rows {
  uint32_t table = 0;
  std::vector<Key> keys;
  std::vector<float> values;
};

}  // namespace argosy

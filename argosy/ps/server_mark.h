#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy {

/// What a server had taken when a save was made.
struct ServerMark {
  uint64_t step = 0;
  std::vector<uint64_t> applied = {};  // exchanges, by worker

  std::string text() const;
  static ServerMark parse(const std::string& text);  // throws DataError
};

}  // namespace argosy

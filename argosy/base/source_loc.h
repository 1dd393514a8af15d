#pragma once

#include <ostream>

namespace argosy {

/// A line of source. As a last parameter with the default current() it is the caller's line:
/// std::source_location, which clang 14 does not have with this standard library.
struct SourceLoc {
  const char* file = "";
  int line = 0;

  static constexpr SourceLoc current(const char* file = __builtin_FILE(),
                                     int line = __builtin_LINE()) {
    return {file, line};
  }
  friend std::ostream& operator<<(std::ostream& out, const SourceLoc& at) {
    return out << at.file << ':' << at.line;
  }
};

}  // namespace argosy

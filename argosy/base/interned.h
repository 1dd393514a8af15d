#pragma once

#include <string_view>

namespace argosy {

/// The name of a file for the life of the process, so that a SourceLoc can point at it. Names are
/// few: nothing is ever given back. Thread safety: full.
const char* interned(std::string_view name);

}  // namespace argosy

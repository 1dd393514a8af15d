#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace argosy {

/// Bytes, written as 2G, 512M, 64K or 4096; units are powers of 1024. Throws ConfigError that
/// begins with `what`.
uint64_t parse_memory(std::string_view text, std::string_view what);
/// In the largest unit that divides it.
std::string memory_text(uint64_t bytes);

}  // namespace argosy

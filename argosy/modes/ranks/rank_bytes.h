#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/comm/group.h"

namespace argosy {

/// The bytes of each rank, of any length. Every rank calls it with the same name; if names differ,
/// throws ConfigError with both.
std::vector<std::vector<std::byte>> gather_bytes(comm::Group& group, std::string_view name,
                                                 std::span<const std::byte> mine);

/// The bytes of rank 0, on every rank.
std::vector<std::byte> bytes_of_first(comm::Group& group, std::span<const std::byte> mine);

}  // namespace argosy

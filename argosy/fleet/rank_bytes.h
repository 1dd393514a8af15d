#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/comm/group.h"

namespace argosy {

/// Each rank's bytes, by rank; any number of them. Every rank calls it with the same name. Throws
/// ConfigError where ranks are at different places, naming both.
std::vector<std::vector<std::byte>> gather_bytes(Group& group, std::string_view name,
                                                 std::span<const std::byte> mine);

/// The bytes of rank 0, on every rank.
std::vector<std::byte> bytes_of_first(Group& group, std::span<const std::byte> mine);

}  // namespace argosy

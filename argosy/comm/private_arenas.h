#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace argosy::comm {

/// Arenas of a rank that shares no memory with others: zeroed, on cache lines.
class PrivateArenas {
 public:
  std::span<std::byte> add(size_t bytes) {
    constexpr size_t kAlignment = 64;
    all_.emplace_back(bytes + kAlignment);
    void* memory = all_.back().data();
    size_t space = all_.back().size();
    std::align(kAlignment, bytes, memory, space);
    return {static_cast<std::byte*>(memory), bytes};
  }

 private:
  std::vector<std::vector<std::byte>> all_;
};

}  // namespace argosy::comm

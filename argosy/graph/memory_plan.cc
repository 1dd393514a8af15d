#include "argosy/graph/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace argosy {

size_t plan_memory(std::span<Lifetime> buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });

  size_t arena = 0;
  std::vector<size_t> placed;  // by offset
  for (size_t index : order) {
    Lifetime& buffer = buffers[index];
    size_t offset = 0;
    for (size_t other_index : placed) {
      const Lifetime& other = buffers[other_index];
      if (other.last < buffer.first || buffer.last < other.first) continue;
      if (offset + buffer.bytes <= other.offset) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    buffer.offset = offset;
    arena = std::max(arena, offset + buffer.bytes);
    const auto place =
        std::ranges::upper_bound(placed, offset, {}, [&](size_t i) { return buffers[i].offset; });
    placed.insert(place, index);
  }
  return arena;
}

size_t required_memory(std::span<const Lifetime> buffers) {
  size_t steps = 0, most = 0;
  for (const Lifetime& buffer : buffers) steps = std::max(steps, buffer.last + 1);
  for (size_t step = 0; step < steps; ++step) {
    size_t alive = 0;
    for (const Lifetime& buffer : buffers)
      if (buffer.first <= step && step <= buffer.last) alive += buffer.bytes;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace argosy

#include "argosy/graph/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace argosy {

namespace {

/// Puts each buffer, in this order, at the lowest place that is free while it lives; returns the
/// size of the arena.
size_t place(std::span<Lifetime> buffers, std::span<const size_t> order) {
  size_t arena = 0;
  std::vector<size_t> placed;  // by offset
  placed.reserve(order.size());
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
    const auto at =
        std::ranges::upper_bound(placed, offset, {}, [&](size_t i) { return buffers[i].offset; });
    placed.insert(at, index);
  }
  return arena;
}

}  // namespace

size_t plan_memory(std::span<Lifetime> buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });

  // Largest first is good, seldom best: the buffer that sticks out at the top is then placed first,
  // a few times over, and the best order seen is taken.
  constexpr int kTries = 64;
  const size_t required = required_memory(buffers);
  std::vector<size_t> best = order;
  size_t best_arena = place(buffers, order);
  for (int i = 0; i < kTries && best_arena > required; ++i) {
    const auto top = std::ranges::max_element(
        order, {}, [&](size_t b) { return buffers[b].offset + buffers[b].bytes; });
    std::rotate(order.begin(), top, top + 1);
    const size_t arena = place(buffers, order);
    if (arena >= best_arena) continue;
    best_arena = arena;
    best = order;
  }
  return place(buffers, best);
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

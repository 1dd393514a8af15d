#pragma once

#include <cstddef>
#include <span>

namespace argosy {

/// A buffer that must hold its content from step `first` to step `last`, both included.
struct Lifetime {
  size_t bytes = 0;
  size_t first = 0, last = 0;
  size_t offset = 0;  // answer of plan_memory
};

/// Gives each buffer an offset in one arena such that buffers alive together never overlap;
/// returns the arena's size, at least required_memory() and close to it.
size_t plan_memory(std::span<Lifetime> buffers);

/// The least any plan needs: the most bytes alive at one step.
size_t required_memory(std::span<const Lifetime> buffers);

}  // namespace argosy

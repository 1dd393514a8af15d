#pragma once

#include <cstdint>
#include <vector>

#include "argosy/base/rows.h"
#include "argosy/tensor/tensor.h"

namespace argosy {

/// The baton. One Batch travels reader -> fetch -> compute -> commit -> reader, has exactly one
/// owner at any time, and is recycled, so a steady state allocates nothing.
struct Batch {
  uint64_t step = 0;        // the first is 1
  size_t size = 0;          // instances
  Feeds feeds;              // inputs and labels from the reader, parameters from fetch
  std::vector<Rows> rows;   // per sparse table: unique keys, then pulled rows
  std::vector<Rows> grads;  // per sparse table: gradients on their way to the servers
};

}  // namespace argosy

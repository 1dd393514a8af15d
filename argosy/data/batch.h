#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "argosy/base/rows.h"
#include "argosy/tensor/tensor.h"

namespace argosy {

/// How much of a file has been delivered.
struct FileMark {
  static constexpr uint64_t kWhole = ~uint64_t{0};
  uint32_t file = 0;   // its place in the data set's list
  uint64_t lines = 0;  // that are done with; kWhole: all of them
};

/// Where an instance came from, for an audit.
struct Origin {
  uint32_t file = 0;
  uint64_t line = 0;
};

/// What a communicator keeps with a batch from its fetch to its commit.
struct Carried {
  virtual ~Carried() = default;
};

/// The baton. One Batch travels reader -> fetch -> compute -> commit -> reader, has exactly one
/// owner at any time, and is recycled, so a steady state allocates nothing.
struct Batch {
  uint64_t step = 0;  // the first is 1
  Feeds feeds;        // inputs and labels from the reader, rows and parameters from fetch

  // From the reader:
  size_t size = 0;                     // instances
  std::vector<std::vector<Key>> keys;  // by key set of the layout: each key once
  std::vector<FileMark> marks;         // of every file that it took lines from
  std::vector<Origin> origins;         // of each instance, in an audit only

  // From compute, good until commit: by table the gradient, by state the next value.
  std::vector<std::span<const float>> grads;
  std::vector<Tensor> next_states;

  std::unique_ptr<Carried> carried;  // from fetch

  /// Exchanges what readers fill, and leaves the rest where it is.
  void swap_content(Batch& reader);
};

}  // namespace argosy

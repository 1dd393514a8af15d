#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "argosy/base/key.h"
#include "argosy/base/trained.h"
#include "argosy/tensor/tensor.h"

namespace argosy {

/// How much of a file has been delivered.
struct FileMark {
  static constexpr uint64_t kWhole = ~uint64_t{0};
  uint32_t file = 0;   // its place in the data set's list
  uint64_t lines = 0;  // that are done with; kWhole: all of them
};

/// The origin of an instance, for an audit.
struct Origin {
  uint32_t file = 0;
  uint64_t line = 0;
};

/// Side columns of a key set, by key; empty if no table wants them.
struct KeyColumns {
  std::vector<uint32_t> counts;      // occurrences in the batch
  std::vector<float> shows, clicks;  // summed over them
};

/// The baton. One Batch travels reader -> fetch -> compute -> commit -> reader, has exactly one
/// owner at any time, and is recycled, so a steady state allocates nothing.
struct Batch {
  uint64_t step = 0;  // the first is 1
  Feeds feeds;        // inputs and labels from the reader, rows and parameters from fetch

  // From the reader:
  size_t size = 0;                      // instances
  std::vector<std::vector<Key>> keys;   // by key set of the layout: each key once
  std::vector<KeyColumns> key_columns;  // by key set; none if no table wants any
  std::vector<FileMark> marks;          // of every file that it took lines from
  std::vector<Origin> origins;          // of each instance, in an audit only

  // From compute, good until commit: gradients by parameter, and of the rows by table; by state the
  // next value.
  std::vector<std::span<const float>> grads, row_grads;
  std::vector<Tensor> next_states;
  Trained trained;        // with this batch
  bool replayed = false;  // an earlier process of this worker has pushed it

  /// Swaps the fields that readers fill, and leaves the rest.
  void swap_content(Batch& reader);
};

}  // namespace argosy

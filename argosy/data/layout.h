#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/tensor/tensor.h"

namespace argosy {

/// An input that is read unchanged from a slot of fixed width.
struct ColumnFeed {
  std::string input;         // also the slot's name
  Shape shape = {};          // its axis 0 is the batch, the others together the slot's width
  DType dtype = DType::f32;  // or i64
  /// The unchanged label of a log loss: 0 or 1, anything else makes a line of a file bad. (Fed as
  /// an array it may be soft: the loss itself takes 0 to 1.)
  bool binary = false;
};

/// An input that says which row of a batch's unique keys each id of some slots has.
struct IndexFeed {
  std::string index;         // i32[batch, slots], or flat with offsets
  std::string offsets = {};  // i32[batch * slots + 1]: start of the ids of each (instance, slot)
  std::vector<std::string> slots;
  size_t key_set = 0;                    // of the batch
  std::optional<uint64_t> padding = {};  // this id has no key; its index is -1
};

/// The side columns that tables want for a key set.
struct KeyColumnsFeed {
  bool counts = false;                // how often each occurs in the batch
  std::string show = {}, click = {};  // inputs of one number each, summed over a key's occurrences
};

/// The batches a reader must make of its slots for a program. Tables looked up by the same slots
/// share a key set, so ids are deduplicated once.
struct BatchLayout {
  std::vector<ColumnFeed> columns = {};
  std::vector<IndexFeed> indices = {};
  size_t key_sets = 0;
  std::vector<KeyColumnsFeed> key_columns = {};  // by key set; none: no set has any
};

}  // namespace argosy

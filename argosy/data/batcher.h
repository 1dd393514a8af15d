#pragma once

#include <vector>

#include "argosy/base/key_numbering.h"
#include "argosy/data/batch.h"
#include "argosy/data/columns.h"
#include "argosy/data/layout.h"

namespace argosy {

/// Makes feeds and unique keys of parsed instances: every id is looked up once here, and from then
/// on is a row number. Keys are in order of first use by slots and instances. Thread safety: none,
/// one per reading thread.
class Batcher {
 public:
  /// Throws ConfigError naming a slot that the layout needs and the slots do not have, and the
  /// nearest that exists.
  Batcher(BatchLayout layout, std::span<const SlotSpec> slots);

  /// All rows of the columns, which have the slots of the constructor. Uses the batch's memory
  /// again.
  void fill(const Columns& columns, Batch& out);

 private:
  using Slots = std::vector<size_t>;  // numbers of slots of the data

  void fill_column(const ColumnFeed& feed, size_t slot, const Columns& columns, Batch& out) const;
  void fill_index(const IndexFeed& feed, const Slots& slots, const Columns& columns, Batch& out);
  void fill_flat_index(const IndexFeed& feed, const Slots& slots, const Columns& columns,
                       Batch& out);

  BatchLayout layout_;
  std::vector<size_t> column_slots_;
  std::vector<Slots> index_slots_;
  std::vector<size_t> same_as_;  // by index: an earlier one with the same content, or itself
  std::vector<KeyNumbering> numberings_;
};

}  // namespace argosy

#pragma once

#include <span>
#include <vector>

#include "argosy/ps/sparse_table.h"

namespace argosy {

/// The keys of a table that were pushed last, the same on every rank: what ranks compare between
/// two looks at all rows, at a cost that no table and no batch can exceed.
class TouchedRows {
 public:
  static constexpr size_t kMost = 8192;

  void add(std::span<const Key> keys);
  /// Of these keys and their weights; forgets them.
  uint64_t take_hash(const SparseTable& table);

 private:
  std::vector<Key> keys_;  // a ring from kMost on
  size_t next_ = 0;
  std::vector<float> weights_;
};

}  // namespace argosy

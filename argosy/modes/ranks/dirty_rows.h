#pragma once

#include <span>
#include <vector>

#include "argosy/ps/row_table.h"

namespace argosy {

/// The most recently pushed keys of a table, the same on every rank: a bounded sample for ranks to
/// compare between two comparisons of all rows.
class DirtyRows {
 public:
  static constexpr size_t kMost = 8192;

  void add(std::span<const Key> keys);
  /// Hash of these keys and their weights; clears them.
  uint64_t take_hash(ps::RowTable& table);

 private:
  std::vector<Key> keys_;  // a ring from kMost on
  size_t next_ = 0;
  std::vector<float> weights_;
  ps::Ticket ticket_;
};

}  // namespace argosy

#pragma once

#include <span>
#include <vector>

#include "argosy/base/key_numbering.h"
#include "argosy/ps/row_table.h"

namespace argosy::ps {

/// Sums the gradients of several key lists by key, so that a table can apply them in one step. Sums
/// run in the order of the calls and of the keys in each, so equal calls give equal bits. Memory is
/// reused. Thread safety: none.
class RowSums {
 public:
  /// Clears. At most `most_keys` keys follow in all; keys outside `part` are skipped.
  void begin(const TableSpec& spec, RowPart part, size_t most_keys);
  /// Adds `scale` times the gradients.
  void add(std::span<const Key> keys, const RowColumns& columns, std::span<const float> grads,
           float scale = 1);

  std::span<const Key> keys() const { return keys_; }
  std::span<const float> grads() const { return grads_; }
  RowColumns columns() const { return {counts_, shows_, clicks_}; }

 private:
  size_t dim_ = 1, shards_ = 1;
  RowPart part_;
  KeyNumbering numbering_;
  std::vector<Key> keys_;
  std::vector<float> grads_;
  std::vector<uint32_t> counts_;
  std::vector<float> shows_, clicks_;
};

/// Applies gradients of keys that may repeat: one step per key, with the sum. Waits for rows that
/// are not ready. `sums` and `ticket` are scratch memory.
void apply_rows(RowTable& table, std::span<const Key> keys, const RowColumns& columns,
                std::span<const float> grads, uint64_t step, RowSums& sums, Ticket& ticket);

}  // namespace argosy::ps

#pragma once

#include <vector>

#include "argosy/data/batch.h"
#include "argosy/ps/row_columns.h"

namespace argosy {

/// Side columns of a batch's key set, as tables take them.
inline ps::RowColumns columns_of(const Batch& batch, size_t set) {
  if (batch.key_columns.empty()) return {};
  const KeyColumns& columns = batch.key_columns[set];
  return {columns.counts, columns.shows, columns.clicks};
}

/// By key set; empty if the batch has none.
inline std::vector<ps::RowColumns> row_columns(const Batch& batch) {
  std::vector<ps::RowColumns> all;
  for (size_t set = 0; set < batch.key_columns.size(); ++set) all.push_back(columns_of(batch, set));
  return all;
}

}  // namespace argosy

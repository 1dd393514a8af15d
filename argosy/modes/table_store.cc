#include "argosy/modes/table_store.h"

#include <algorithm>

namespace argosy {

void RowsByKey::add(std::span<const Key> keys, std::vector<float> rows) {
  values_.push_back(std::move(rows));
  for (size_t i = 0; i < keys.size(); ++i)
    rows_.push_back({keys[i], values_.back().data() + i * dim_});
}

TableRows RowsByKey::take() {
  std::ranges::sort(rows_, {}, &Row::key);
  TableRows result;
  result.rows =
      Tensor({static_cast<int64_t>(rows_.size()), static_cast<int64_t>(dim_)}, DType::f32);
  float* to = result.rows.as<float>().data();
  for (const Row& row : rows_) {
    result.keys.push_back(row.key);
    to = std::copy_n(row.values, dim_, to);
  }
  return result;
}

}  // namespace argosy

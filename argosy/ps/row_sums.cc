#include "argosy/ps/row_sums.h"

#include <algorithm>

#include "argosy/base/error.h"

namespace argosy::ps {

void RowSums::begin(const TableSpec& spec, RowPart part, size_t most_keys) {
  dim_ = spec.dim;
  shards_ = spec.shards;
  part_ = part;
  numbering_.begin(most_keys);
  keys_.clear();
  grads_.clear();
  counts_.clear();
  shows_.clear();
  clicks_.clear();
}

void RowSums::add(std::span<const Key> keys, const RowColumns& columns,
                  std::span<const float> grads, float scale) {
  check<DataError>(grads.size() == keys.size() * dim_, keys.size(), " keys with ", grads.size(),
                   " gradients, expected ", keys.size() * dim_);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!part_.has(keys[i], shards_)) continue;
    const auto number = static_cast<size_t>(numbering_.number(keys[i], keys_));
    const float* const grad = grads.data() + i * dim_;
    const uint32_t count = columns.counts.empty() ? 1 : columns.counts[i];
    const float show = columns.shows.empty() ? static_cast<float>(count) : columns.shows[i];
    const float click = columns.clicks.empty() ? 0 : columns.clicks[i];
    if (number == counts_.size()) {
      const size_t at = grads_.size();
      grads_.resize(at + dim_);
      for (size_t j = 0; j < dim_; ++j) grads_[at + j] = grad[j] * scale;
      counts_.push_back(count);
      shows_.push_back(show);
      clicks_.push_back(click);
      continue;
    }
    float* const sum = grads_.data() + number * dim_;
    for (size_t j = 0; j < dim_; ++j) sum[j] += grad[j] * scale;
    counts_[number] += count;
    shows_[number] += show;
    clicks_[number] += click;
  }
}

void apply_rows(RowTable& table, std::span<const Key> keys, const RowColumns& columns,
                std::span<const float> grads, uint64_t step, RowSums& sums, Ticket& ticket) {
  sums.begin(table.spec(), {}, keys.size());
  sums.add(keys, columns, grads);
  table.locate(sums.keys(), sums.columns(), {}, ticket);
  await(table, ticket);
  table.apply(ticket, sums.grads(), step);
}

}  // namespace argosy::ps

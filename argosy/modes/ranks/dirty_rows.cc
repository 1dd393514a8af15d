#include "argosy/modes/ranks/dirty_rows.h"

#include <algorithm>

#include "argosy/base/hash.h"

namespace argosy {

void DirtyRows::add(std::span<const Key> keys) {
  keys = keys.last(std::min(keys.size(), kMost));
  const size_t room = kMost - keys_.size();
  const auto fresh = keys.first(std::min(keys.size(), room));
  keys_.insert(keys_.end(), fresh.begin(), fresh.end());
  for (const Key key : keys.subspan(fresh.size())) {
    keys_[next_] = key;
    next_ = (next_ + 1) % kMost;
  }
}

uint64_t DirtyRows::take_hash(ps::RowTable& table) {
  weights_.resize(keys_.size() * table.spec().dim);
  read_rows(table, keys_, ps::Purpose::inference, weights_, ticket_);
  RunningHash hash;
  hash.add(std::as_bytes(std::span(keys_)));
  hash.add(std::as_bytes(std::span(weights_)));
  keys_.clear();
  next_ = 0;
  return hash.digest();
}

}  // namespace argosy

#pragma once

#include <cstdint>
#include <span>

namespace argosy::ps {

/// Side columns of a batch's keys: one value per key, or none at all.
struct RowColumns {
  std::span<const uint32_t> counts = {};           // occurrences in the batch; none: 1 each
  std::span<const float> shows = {}, clicks = {};  // summed over them; none: the counts, and 0
};

}  // namespace argosy::ps

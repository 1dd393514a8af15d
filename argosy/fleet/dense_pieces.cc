#include "argosy/fleet/dense_pieces.h"

#include "argosy/ps/rule.h"

namespace argosy {

std::string DensePiece::name(const Placement& placement) const {
  return placement.tables[table].name + (is_state ? "@state" : "");
}

std::vector<DensePiece> dense_pieces(const Placement& placement, uint32_t server) {
  std::vector<DensePiece> pieces;
  for (const Slice& slice : placement.slices) {
    if (slice.server != server) continue;
    const TableSpec& spec = placement.tables[slice.table];
    pieces.push_back(
        {.table = slice.table, .is_state = false, .begin = slice.begin, .size = slice.size()});
    const size_t state = make_rule(spec.rule)->state_size(spec.elements);
    if (slice.size() == spec.elements && state > 0) {
      pieces.push_back({.table = slice.table, .is_state = true, .begin = 0, .size = state});
      continue;
    }
    // Each kind of state has a value for every element, one kind behind the other.
    for (size_t kind = 0; kind < state / spec.elements; ++kind)
      pieces.push_back({.table = slice.table,
                        .is_state = true,
                        .begin = kind * spec.elements + slice.begin,
                        .size = slice.size()});
  }
  return pieces;
}

}  // namespace argosy

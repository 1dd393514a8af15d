#include "argosy/modes/dense_pieces.h"

#include "argosy/ps/rule.h"

namespace argosy {

std::string DensePiece::name(const ps::Placement& placement) const {
  return placement.parameters[parameter].name + (is_state ? "@state" : "");
}

std::vector<DensePiece> dense_pieces(const ps::Placement& placement, uint32_t server) {
  std::vector<DensePiece> pieces;
  for (const ps::Slice& slice : placement.slices) {
    if (slice.server != server) continue;
    const ps::ParameterSpec& spec = placement.parameters[slice.parameter];
    pieces.push_back({.parameter = slice.parameter,
                      .is_state = false,
                      .begin = slice.begin,
                      .size = slice.size()});
    const size_t state = ps::make_rule(spec.rule)->state_size(spec.elements);
    if (slice.size() == spec.elements && state > 0) {
      pieces.push_back({.parameter = slice.parameter, .is_state = true, .begin = 0, .size = state});
      continue;
    }
    // Each kind of state has one value per element; the kinds follow each other.
    for (size_t kind = 0; kind < state / spec.elements; ++kind)
      pieces.push_back({.parameter = slice.parameter,
                        .is_state = true,
                        .begin = kind * spec.elements + slice.begin,
                        .size = slice.size()});
  }
  return pieces;
}

}  // namespace argosy

#pragma once

#include <vector>

#include "argosy/graph/program.h"

namespace argosy::nn {

struct MergedLookups {
  Program program;
  std::vector<VarId> now;  // by variable of the program before: the one that has its value
};

/// Lookups of one table whose results stand side by side in a concat become one lookup of all
/// their slots, as embedding() records it; what was looked up alone is a slice of it. Only where
/// the results go nowhere else. The program must have no gradients yet.
MergedLookups merge_lookups(const Program& program);

}  // namespace argosy::nn

#pragma once

#include <vector>

#include "argosy/graph/program.h"

namespace argosy::nn {

struct MergedLookups {
  Program program;
  std::vector<VarId> now;  // by variable of the program before: the one that has its value
};

/// Lookups of one table whose results are adjacent in a concat become one lookup of all their
/// slots, as embedding() records it; each single result becomes a slice of it. Only if the results
/// are used nowhere else. The program must have no gradients yet.
MergedLookups merge_lookups(const Program& program);

}  // namespace argosy::nn

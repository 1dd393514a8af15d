#pragma once

#include "argosy/plan/strategy.h"

namespace argosy {

namespace comm {
class Group;
}

/// Collective: every rank gets the same answer.
bool overlaps(comm::Group& group, Overlap wanted);

}  // namespace argosy

#pragma once

#include "argosy/plan/strategy.h"

namespace argosy {

namespace comm {
class Group;
}

/// Every rank comes to the same answer.
bool overlaps(comm::Group& group, Overlap wanted);

}  // namespace argosy

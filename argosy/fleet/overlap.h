#pragma once

#include <cstdint>

namespace argosy {

class Group;

/// When gradients are summed: while backward still runs, or after it. automatic: while it runs,
/// unless all ranks are on one host that has no core to spare.
enum class Overlap : uint8_t { automatic, always, never };

/// Every rank comes to the same answer.
bool overlaps(Group& group, Overlap wanted);

}  // namespace argosy

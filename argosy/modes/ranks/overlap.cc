#include "argosy/modes/ranks/overlap.h"

#include <array>
#include <thread>

#include "argosy/comm/group.h"

namespace argosy {

bool overlaps(comm::Group& group, Overlap wanted) {
  if (wanted != Overlap::automatic) return wanted == Overlap::always;
  if (!group.on_one_host()) return true;
  std::array<int32_t, 1> cores = {static_cast<int32_t>(std::thread::hardware_concurrency())};
  group.all_reduce(std::span<int32_t>(cores), comm::Reduce::min);
  return cores[0] >= 2 * group.size();
}

}  // namespace argosy

#include "argosy/modes/ranks/group_sum.h"

#include <algorithm>
#include <numeric>

namespace argosy {
namespace {

std::unique_ptr<comm::Group> same_ranks(comm::Group& group) {
  std::vector<int> ranks(static_cast<size_t>(group.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return group.sub_group(ranks);
}

}  // namespace

GroupSumOverRanks::GroupSumOverRanks(comm::Group& group) : group_(same_ranks(group)) {}

void GroupSumOverRanks::add_nothing(std::span<const size_t> sizes) {
  for (const size_t size : sizes) {
    const std::span<double> numbers = room(size);
    std::ranges::fill(numbers, 0.0);
    add_up(numbers);
  }
}

}  // namespace argosy

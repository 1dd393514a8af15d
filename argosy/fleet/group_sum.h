#pragma once

#include <memory>

#include "argosy/comm/group.h"
#include "argosy/graph/rank_sum.h"

namespace argosy {

/// Sums over the ranks of a group for the ops of a program. Their calls have an order of their own,
/// so that those of the group may be under way meanwhile. Every rank of the group makes one.
class GroupSum final : public RankSum {
 public:
  explicit GroupSum(Group& group);
  void add_up(std::span<double> numbers) override { group_->all_reduce(numbers); }

  /// The sums of a program's run by a rank that has no batch for it.
  void add_nothing(std::span<const size_t> sizes);

 private:
  const std::unique_ptr<Group> group_;
};

}  // namespace argosy

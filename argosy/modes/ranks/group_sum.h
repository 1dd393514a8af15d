#pragma once

#include <memory>

#include "argosy/comm/group.h"
#include "argosy/graph/sum_over_ranks.h"

namespace argosy {

/// Sums over the ranks of a group, for a program's ops. Has a separate call sequence, so the
/// group's other calls may be in progress. Every rank of the group makes one.
class GroupSumOverRanks final : public SumOverRanks {
 public:
  explicit GroupSumOverRanks(comm::Group& group);
  void add_up(std::span<double> numbers) override { group_->all_reduce(numbers); }

  /// Takes part in the sums of one run with zeros: this rank has no batch.
  void add_nothing(std::span<const size_t> sizes);

 private:
  const std::unique_ptr<comm::Group> group_;
};

}  // namespace argosy

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "argosy/graph/program.h"

namespace argosy {

/// Sums numbers over all processes that run the same program on different batches. With it, a
/// program is a pure function of all their batches together. Thread safety: none.
class SumOverRanks {
 public:
  virtual ~SumOverRanks() = default;
  /// Memory for `numbers` doubles, valid until the next call.
  std::span<double> room(size_t numbers) {
    if (room_.size() < numbers) room_.resize(numbers);
    return std::span(room_).first(numbers);
  }
  /// The numbers become their sums, the same bits everywhere. Every process makes the same calls in
  /// the same order; see sum_over_ranks_sizes.
  virtual void add_up(std::span<double> numbers) = 0;

 private:
  std::vector<double> room_;
};

/// How many numbers each sum over processes has that a run of the program makes, in their order.
std::vector<size_t> sum_over_ranks_sizes(const Program& program);

/// The variable is computed from such a sum, so it is the same in all processes.
bool is_from_rank_sum(const Program& program, VarId id);

}  // namespace argosy

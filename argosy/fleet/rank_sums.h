#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/fleet/half_floats.h"
#include "argosy/fleet/parcels.h"

namespace argosy {

/// The gradients of dense parameters in memory that the ranks of a host share, and their sums over
/// all ranks. A step is put() of every table or put_nothing(), sum() of every bucket in the order
/// of the parcels, and finish(). The group and the parcels outlive it. Thread safety: none.
class RankSums {
 public:
  RankSums(Group& group, const Parcels& parcels, const Strategy& strategy);

  /// Where a table's gradient lies.
  std::span<float> place(size_t table) {
    return memory_.subspan(members_[table].begin, members_[table].size);
  }
  /// The gradient of one of the batches that make a step; `first`: of its first one.
  void put(size_t table, std::span<const float> grad, bool first);
  /// This rank has no batch for the step.
  void put_nothing();
  /// So many batches were put, and no more will come, although more make a step. What gradients
  /// are to be multiplied by for it; those put here are.
  float end_at(int batches);

  enum class When : uint8_t { later, now };  // by a thread of the group, or before it returns
  void sum(size_t parcel, When when);
  /// When every sum is made: how many ranks had a batch.
  int finish();
  /// What every sum is to be multiplied by where so many ranks had a batch.
  float correction(int active) const;
  /// What gradients are multiplied by before they are summed; 1: they may be computed in place.
  float share() const { return share_; }
  /// The same of a gradient that nobody divides afterwards.
  float whole_share() const { return whole_share_; }

 private:
  /// A bucket in half floats: its slices go to one rank each, which adds them up.
  struct Packed {
    size_t parcel = 0;
    size_t slice = 0;  // numbers for each rank; two half floats make a number
    std::vector<int32_t> mine = {}, theirs = {};
    std::vector<float> sum = {};  // of this rank's slice
  };
  void make_packed();
  Collective exchange_packed(Packed& packed);
  void finish_packed(Packed& packed);

  Group& group_;
  const Parcels& parcels_;
  const int batches_;  // that make a step
  const bool batches_mean_, ranks_mean_;
  const HalfKind wire_;
  std::span<float> memory_;
  std::vector<Parcel::Member> members_;  // by table
  float share_ = 1, whole_share_ = 1;
  Reduce reduce_ = Reduce::sum;
  bool has_batch_ = false;
  std::vector<Work> work_;      // by parcel
  std::vector<Packed> packed_;  // by parcel; none: they go as floats
};

}  // namespace argosy

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/modes/ranks/buckets.h"
#include "argosy/modes/ranks/half_floats.h"

namespace argosy {

/// Sums dense gradients over all ranks, in memory that the ranks of a host share. A step is put()
/// of every parameter or put_nothing(), then sum() of every bucket in order, then finish(). The
/// group and the buckets must outlive it. Thread safety: none.
class BucketSums {
 public:
  BucketSums(comm::Group& group, const Buckets& buckets, const Strategy& strategy);

  /// The memory of a parameter's gradient.
  std::span<float> place(size_t parameter) {
    return memory_.subspan(members_[parameter].begin, members_[parameter].size);
  }
  /// Adds the gradient of one batch of the step; `first` marks the first batch.
  void put(size_t parameter, std::span<const float> grad, bool first);
  /// This rank has no batch for the step.
  void put_nothing();
  /// The data ended after `batches` of the step's batches. Returns the factor that gradients need
  /// for it, and applies it to those put here.
  float end_at(int batches);

  enum class When : uint8_t { later, now };  // later: on the group's thread
  void sum(size_t number, When when);        // of a bucket
  /// Waits for every sum; returns how many ranks had a batch.
  int finish();
  /// The factor that every sum needs if `active` ranks had a batch.
  float correction(int active) const;
  /// Factor on gradients before they are summed; 1: they may be computed in place.
  float share() const { return share_; }
  /// As above, for gradients that are not divided afterwards.
  float whole_share() const { return whole_share_; }

 private:
  /// A bucket in half floats: each rank sums one slice of it.
  struct Packed {
    size_t bucket = 0;
    size_t slice = 0;  // numbers for each rank; two half floats make a number
    std::vector<int32_t> mine = {}, theirs = {};
    std::vector<float> sum = {};  // of this rank's slice
  };
  void make_packed();
  comm::Collective exchange_packed(Packed& packed);
  void finish_packed(Packed& packed);

  comm::Group& group_;
  const Buckets& buckets_;
  const int batches_;  // that make a step
  const bool batches_mean_, ranks_mean_;
  const HalfKind wire_;
  std::span<float> memory_;
  std::vector<Bucket::Member> members_;  // by parameter
  float share_ = 1, whole_share_ = 1;
  comm::Reduce reduce_ = comm::Reduce::sum;
  bool has_batch_ = false;
  std::vector<comm::Work> work_;  // by bucket
  std::vector<Packed> packed_;    // by bucket; none: they go as floats
};

}  // namespace argosy

// Invariants:
//   1. Until sum(), memory_ has this rank's gradients times share_; the sum replaces them in place.
//   2. All ranks end with the same bits. In half floats each rank adds one slice in rank order,
//      rounds it, and every rank, itself included, reads the rounded slice.
//   3. With floats, memory_[0] is summed along with first_bucket and counts the ranks that have a
//      batch. Half floats cannot count far: there finish() makes a separate call.
#include "argosy/modes/ranks/bucket_sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "argosy/base/denormals.h"
#include "argosy/base/isa.h"

namespace argosy {
namespace {

constexpr size_t kLine = 64 / sizeof(int32_t);  // numbers in a cache line

void scale(std::span<const float> from, float factor, std::span<float> to) {
  vectorized([x = from.data(), y = to.data(), n = from.size(), factor] {
    for (size_t i = 0; i < n; ++i) y[i] = x[i] * factor;
  });
}

void add_scaled(std::span<const float> from, float factor, std::span<float> to) {
  vectorized([x = from.data(), y = to.data(), n = from.size(), factor] {
    for (size_t i = 0; i < n; ++i) y[i] += x[i] * factor;
  });
}

std::span<uint16_t> as_halves(std::span<int32_t> numbers) {
  return {reinterpret_cast<uint16_t*>(numbers.data()), 2 * numbers.size()};
}

}  // namespace

BucketSums::BucketSums(comm::Group& group, const Buckets& buckets, const Strategy& strategy)
    : group_(group),
      buckets_(buckets),
      batches_(strategy.accumulate),
      batches_mean_(strategy.accumulate_mean),
      ranks_mean_(strategy.collective.scale == GradientScale::mean),
      wire_(half_kind(strategy.collective.wire)),
      members_(buckets.of_parameter.size()),
      work_(buckets.all.size()) {
  const auto bytes = group.arena(buckets.floats * sizeof(float));
  memory_ = {reinterpret_cast<float*>(bytes.data()), buckets.floats};
  for (const Bucket& bucket : buckets.all)
    for (const Bucket::Member& member : bucket.members) members_[member.parameter] = member;
  // To take each gradient with its share is what one process that accumulates does. To divide the
  // sum saves a pass over memory.
  const bool first = strategy.collective.deterministic || wire_ != HalfKind::none;
  const int batches = batches_mean_ ? batches_ : 1, ranks = ranks_mean_ ? group.size() : 1;
  share_ = 1.0F / static_cast<float>(first ? batches * ranks : batches);
  whole_share_ = 1.0F / static_cast<float>(batches * ranks);
  reduce_ = ranks_mean_ && !first ? comm::Reduce::avg : comm::Reduce::sum;
  if (wire_ != HalfKind::none) make_packed();
}

void BucketSums::make_packed() {
  const auto ranks = static_cast<size_t>(group_.size());
  packed_.resize(buckets_.all.size());
  for (size_t i = 0; i < packed_.size(); ++i) {
    const size_t numbers = (buckets_.all[i].size + 2 * ranks - 1) / (2 * ranks);
    const size_t slice = (numbers + kLine - 1) / kLine * kLine;
    packed_[i] = {.bucket = i,
                  .slice = slice,
                  .mine = std::vector<int32_t>(slice * ranks),
                  .theirs = std::vector<int32_t>(slice * ranks),
                  .sum = std::vector<float>(2 * slice)};
  }
}

void BucketSums::put(size_t parameter, std::span<const float> grad, bool first) {
  const FlushDenormals flush;
  has_batch_ = true;
  const std::span<float> to = place(parameter);
  if (!first)
    add_scaled(grad, share_, to);
  else if (share_ != 1)
    scale(grad, share_, to);
  else if (grad.data() != to.data())
    std::ranges::copy(grad, to.begin());
}

void BucketSums::put_nothing() {
  has_batch_ = false;
  std::ranges::fill(memory_, 0.0F);
}

float BucketSums::end_at(int batches) {
  if (!batches_mean_) return 1;
  const FlushDenormals flush;
  const float factor = static_cast<float>(batches_) / static_cast<float>(batches);
  scale(memory_, factor, memory_);
  return factor;
}

void BucketSums::sum(size_t number, When when) {
  const Bucket& bucket = buckets_.all[number];
  if (number == buckets_.first_bucket) memory_[0] = has_batch_ ? 1 : 0;
  const comm::Collective call =
      wire_ == HalfKind::none
          ? comm::calls::all_reduce(memory_.subspan(bucket.begin, bucket.size), reduce_)
          : exchange_packed(packed_[number]);
  if (when == When::now)
    group_.run(call);
  else
    work_[number] = group_.start(call);
}

comm::Collective BucketSums::exchange_packed(Packed& packed) {
  const Bucket& bucket = buckets_.all[packed.bucket];
  to_half(wire_, memory_.subspan(bucket.begin, bucket.size),
          as_halves(packed.mine).first(bucket.size));
  return comm::calls::all_to_all(group_, std::span<const int32_t>(packed.mine),
                                 std::span(packed.theirs));
}

/// Sums the slices in rank order; every rank, also this one, takes the sum rounded to half again.
void BucketSums::finish_packed(Packed& packed) {
  const Bucket& bucket = buckets_.all[packed.bucket];
  const auto ranks = static_cast<size_t>(group_.size()), rank = static_cast<size_t>(group_.rank());
  const size_t each = 2 * packed.slice;
  const std::span<uint16_t> theirs = as_halves(packed.theirs);
  from_half(wire_, theirs.first(each), packed.sum);
  for (size_t q = 1; q < ranks; ++q) add_half(wire_, theirs.subspan(q * each, each), packed.sum);
  const std::span<int32_t> own = std::span(packed.mine).subspan(rank * packed.slice, packed.slice);
  to_half(wire_, packed.sum, as_halves(own));
  group_.all_gather(std::span<const int32_t>(own), std::span(packed.mine));
  from_half(wire_, as_halves(packed.mine).first(bucket.size),
            memory_.subspan(bucket.begin, bucket.size));
}

int BucketSums::finish() {
  for (comm::Work& work : work_) work.wait();
  if (wire_ == HalfKind::none) {
    const double active = static_cast<double>(memory_[0]);
    return static_cast<int>(
        std::lround(reduce_ == comm::Reduce::avg ? active * group_.size() : active));
  }
  const FlushDenormals flush;
  for (Packed& packed : packed_)
    if (!buckets_.all[packed.bucket].rows) finish_packed(packed);
  std::array<int32_t, 1> active = {has_batch_ ? 1 : 0};  // half floats cannot count far
  group_.all_reduce(std::span<int32_t>(active));
  return active[0];
}

float BucketSums::correction(int active) const {
  if (!ranks_mean_ || active == 0) return 1;
  return static_cast<float>(group_.size()) / static_cast<float>(active);
}

}  // namespace argosy

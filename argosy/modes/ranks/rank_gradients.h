#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/graph/autograd.h"
#include "argosy/modes/ranks/overlap.h"
#include "argosy/watch/activity.h"

namespace argosy {

struct RankGradientOptions {
  bool find_unused = false;  // a rank whose backward() did not reach a parameter adds zeros for it
  bool deterministic = false;  // the bits of one process that adds up all ranks' shares in order
  comm::Reduce scale = comm::Reduce::avg;  // or sum
  Overlap overlap = Overlap::automatic;
  size_t bucket_bytes = 25'000'000;      // gradients are sent together from this size on
  size_t last_bucket_bytes = 1'000'000;  // for the first parameters, final last
  std::shared_ptr<Activity> activity =
      {};  // of this rank, told of each reduce(); null: not reported
};

/// Reduces the gradients of a dynamic graph's parameters over all ranks. Every rank makes it of the
/// same parameters and calls reduce() equally often. Thread safety: none.
class RankGradients {
 public:
  struct Parameter {
    std::string name;
    dynamic::ValuePtr value;  // f32
  };
  /// Sets every parameter to its value on rank 0. Throws ConfigError if ranks have different
  /// parameters or options.
  RankGradients(std::shared_ptr<comm::Group> group, std::vector<Parameter> parameters,
                const RankGradientOptions& options);

  /// dynamic::backward() that sends gradients as they become final; call reduce() next. The first
  /// reduce() decides which gradients can be sent early; row gradients are sent at the end.
  void backward(const dynamic::ValuePtr& of, const std::optional<Tensor>& seed,
                dynamic::Graph graph);
  /// Whether backward() has reached a parameter since the last reduce().
  bool reached() const { return times_reached() != seen_; }
  /// Replaces gradients, whole or of rows, by the mean or sum over all ranks. Throws ConfigError on
  /// every rank for a parameter without a gradient, unless find_unused; one that no rank has
  /// reached is left alone.
  void reduce();

 private:
  enum class Kind : int32_t { none, rows, whole };
  /// Whole gradients of consecutive parameters that are sent together.
  struct Bucket {
    std::vector<size_t> members;
    size_t begin = 0, elements = 0;  // of the gradients in memory_
    size_t missing = 0;              // members not final yet
  };

  dynamic::Value& value(size_t parameter) const { return *parameters_[parameter].value; }
  size_t elements(size_t parameter) const;
  uint64_t times_reached() const;
  Kind kind(size_t parameter) const;
  void write_kinds();
  std::vector<Kind> agreed() const;
  void lay_out(std::span<const size_t> more);
  void count_final(const dynamic::Value& leaf);
  comm::Collective filled(const Bucket& bucket);
  void take(const Bucket& bucket, std::span<const Kind> kinds);
  void sum_whole(std::span<const size_t> members);
  void sum_rows(std::span<const size_t> members);
  void reduce_all();
  dynamic::RowGradient sum_rows(const dynamic::Value& value, std::span<const int64_t> counts) const;

  const std::shared_ptr<comm::Group> group_;
  const std::vector<Parameter> parameters_;
  const RankGradientOptions options_;
  const comm::Reduce reduce_;  // of memory_
  bool overlaps_ = false;
  std::span<float> memory_;      // that the ranks of a host share
  std::vector<Bucket> buckets_;  // in the order in which they are sent
  std::vector<bool> placed_;     // by parameter: it is in a bucket
  std::unordered_map<const dynamic::Value*, size_t> bucket_of_;
  size_t sent_ = 0;  // buckets of this step
  uint64_t seen_ = 0;
  uint64_t steps_ = 0;  // calls of reduce()
};

}  // namespace argosy

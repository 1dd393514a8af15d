#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/fleet/overlap.h"
#include "argosy/graph/autograd.h"

namespace argosy {

struct RankGradientOptions {
  bool find_unused = false;  // a rank whose backward() did not reach a parameter adds zeros for it
  bool deterministic = false;  // the bits of one process that adds up all ranks' shares in order
  Reduce scale = Reduce::avg;  // or sum
  Overlap overlap = Overlap::automatic;
  size_t bucket_bytes = 25'000'000;      // gradients are sent together from this size on
  size_t last_bucket_bytes = 1'000'000;  // those of the first parameters, which are final last
};

/// The gradients of a dynamic graph's parameters, which become those of all ranks. Every rank makes
/// it of the same parameters and calls reduce() as often. Thread safety: none.
class RankGradients {
 public:
  struct Parameter {
    std::string name;
    dynamic::ValuePtr value;  // f32
  };
  /// Throws ConfigError where ranks have other parameters or options. Every value becomes that of
  /// rank 0.
  RankGradients(std::shared_ptr<Group> group, std::vector<Parameter> parameters,
                const RankGradientOptions& options);

  /// dynamic::backward() that sends gradients as they become final; reduce() comes next. The first
  /// reduce() decides which ones that are: those of rows are sent at the end.
  void backward(const dynamic::ValuePtr& of, const std::optional<Tensor>& seed,
                dynamic::Graph graph);
  /// Whether backward() has come to a parameter since the last reduce().
  bool reached() const { return times_reached() != seen_; }
  /// The mean or sum over all ranks, of whole gradients and of those of rows. Throws ConfigError on
  /// every rank for a parameter without a gradient, unless find_unused; one that no rank has
  /// reached is left as it is.
  void reduce();

 private:
  enum class Kind : int32_t { none, rows, whole };
  /// Whole gradients that are sent together: those of parameters that follow each other.
  struct Bucket {
    std::vector<size_t> members;
    size_t begin = 0, elements = 0;  // of the gradients in memory_
    size_t missing = 0;              // members that are not final
  };

  dynamic::Value& value(size_t parameter) const { return *parameters_[parameter].value; }
  size_t elements(size_t parameter) const;
  uint64_t times_reached() const;
  Kind kind(size_t parameter) const;
  void write_kinds();
  std::vector<Kind> agreed() const;
  void lay_out(std::span<const size_t> more);
  void count_final(const dynamic::Value& leaf);
  Collective filled(const Bucket& bucket);
  void take(const Bucket& bucket, std::span<const Kind> kinds);
  void sum_whole(std::span<const size_t> members);
  void sum_rows(std::span<const size_t> members);
  dynamic::RowGradient sum_rows(const dynamic::Value& value, std::span<const int64_t> counts) const;

  const std::shared_ptr<Group> group_;
  const std::vector<Parameter> parameters_;
  const RankGradientOptions options_;
  const Reduce reduce_;  // of what is in memory_
  bool overlaps_ = false;
  std::span<float> memory_;      // that the ranks of a host share
  std::vector<Bucket> buckets_;  // in the order in which they are sent
  std::vector<bool> placed_;     // by parameter: it is in a bucket
  std::unordered_map<const dynamic::Value*, size_t> bucket_of_;
  size_t sent_ = 0;  // buckets of this step
  uint64_t seen_ = 0;
};

}  // namespace argosy

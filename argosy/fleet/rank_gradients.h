#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/graph/autograd.h"

namespace argosy {

struct RankGradientOptions {
  bool find_unused = false;  // a rank whose backward() did not reach a parameter adds zeros for it
  bool deterministic = false;  // the bits of one process that adds up all ranks' shares in order
  Reduce scale = Reduce::avg;  // or sum
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

  /// Whether backward() has come to a parameter since the last reduce().
  bool reached() const { return times_reached() != seen_; }
  /// The mean or sum over all ranks, of whole gradients and of those of rows. Throws ConfigError on
  /// every rank for a parameter without a gradient, unless find_unused; one that no rank has
  /// reached is left as it is.
  void reduce();

 private:
  enum class Kind : int32_t { none, rows, whole };
  struct Member {
    const Parameter* parameter;
    Kind kind;
  };

  uint64_t times_reached() const;
  std::vector<Member> agreed() const;
  void check_all_reached(std::span<const Member> mine, std::span<const int32_t> least) const;
  void sum_whole(std::span<const Member> members);
  void sum_rows(std::span<const Member> members);
  dynamic::RowGradient sum_rows(const dynamic::Value& value, std::span<const int64_t> counts) const;

  const std::shared_ptr<Group> group_;
  const std::vector<Parameter> parameters_;
  const RankGradientOptions options_;
  std::span<float> memory_;  // that the ranks of a host share
  uint64_t seen_ = 0;
};

}  // namespace argosy

#pragma once

#include <memory>
#include <span>
#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/ps/gradient.h"
#include "argosy/ps/rule.h"
#include "argosy/ps/schedule.h"
#include "argosy/ps/specs.h"

namespace argosy::ps {

/// A dense parameter, or a slice of one, with its optimizer state. Weights lie in one piece, so
/// that a worker in the same process computes on them without a copy. Sizes or steps that do not
/// fit throw DataError and change nothing. Thread safety: all methods but weights() and state() may
/// be called from any thread.
class Parameter {
 public:
  explicit Parameter(ParameterSpec spec);  // throws ConfigError

  const ParameterSpec& spec() const { return spec_; }
  /// The span stays good; its content may be read or written only while no other method runs.
  std::span<float> weights() { return {weights_.get(), spec_.elements}; }
  /// Optimizer state; same restriction.
  std::span<float> state() { return {state_.get(), state_size_}; }
  size_t state_size() const { return state_size_; }

  /// One step of the rule, as step number `step` (the first is 1).
  void apply(std::span<const float> grads, uint64_t step);
  void read(std::span<float> weights) const;
  void assign(std::span<const float> weights);
  /// Weights, then the state.
  void copy_out(std::span<float> weights, std::span<float> state) const;
  void copy_in(std::span<const float> weights, std::span<const float> state);

 private:
  using Floats = std::unique_ptr<float[], void (*)(float*)>;
  static Floats aligned_floats(size_t n);  // zeros

  ParameterSpec spec_;
  std::unique_ptr<Rule> rule_;
  Schedule schedule_;
  GradientPolicy policy_;
  size_t state_size_;
  mutable Mutex mutex_;  // guards the content of weights_ and state_
  Floats weights_, state_;
  std::vector<float> scratch_ GUARDED_BY(mutex_);  // a gradient being clipped or decayed
};

}  // namespace argosy::ps

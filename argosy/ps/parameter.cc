#include "argosy/ps/parameter.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <new>

#include "argosy/base/error.h"
#include "argosy/ps/initializer.h"

namespace argosy::ps {
namespace {

ParameterSpec checked(ParameterSpec spec) {
  check<ConfigError>(spec.elements >= 1, "parameter '", spec.name,
                     "': elements is 0, expected at least 1");
  if (spec.of == 0) spec.of = spec.elements;
  check<ConfigError>(spec.first + spec.elements <= spec.of, "parameter '", spec.name,
                     "': elements ", spec.first, " to ", spec.first + spec.elements, " of only ",
                     spec.of);
  return spec;
}

}  // namespace

Parameter::Parameter(ParameterSpec spec)
    : spec_(checked(std::move(spec))),
      rule_(make_rule(spec_.rule)),
      schedule_(spec_.learning_rate),
      policy_(spec_.regularizer, spec_.clip),
      state_size_(rule_->state_size(spec_.elements)),
      weights_(aligned_floats(spec_.elements)),
      state_(aligned_floats(state_size_)) {
  check<ConfigError>(!rule_->whole_parameter() || spec_.elements == spec_.of, "rule '", spec_.rule,
                     "' needs the whole of parameter '", spec_.name, "': a slice has ",
                     spec_.elements, " elements, expected ", spec_.of);
  const Initializer initializer(spec_.init);
  check<ConfigError>(initializer.size().value_or(spec_.of) == spec_.of, "'", spec_.init,
                     "': parameter '", spec_.name, "' has ", spec_.of, " elements");
  initializer.fill(weights(), parameter_stream(spec_.seed, spec_.name), spec_.first);
  rule_->init(state());
  if (policy_.active()) scratch_.resize(spec_.elements);
}

void Parameter::apply(std::span<const float> grads, uint64_t step) {
  check<DataError>(grads.size() == spec_.elements, "parameter '", spec_.name, "': got ",
                   grads.size(), " gradients, expected ", spec_.elements);
  check<DataError>(step > 0, "parameter '", spec_.name, "': step 0, but the first step is 1");
  const Update update{.lr = schedule_.rate(step), .step = step};
  const Lock lock(mutex_);
  if (policy_.active()) {
    std::ranges::copy(grads, scratch_.begin());
    policy_.apply(weights(), scratch_);
    grads = scratch_;
  }
  rule_->apply(weights(), state(), grads, update);
}

void Parameter::read(std::span<float> weights) const {
  check<DataError>(weights.size() == spec_.elements, "parameter '", spec_.name,
                   "': ", weights.size(), " floats asked for, it has ", spec_.elements);
  const Lock lock(mutex_);
  std::copy_n(weights_.get(), spec_.elements, weights.begin());
}

void Parameter::assign(std::span<const float> weights) {
  check<DataError>(weights.size() == spec_.elements, "parameter '", spec_.name,
                   "': ", weights.size(), " floats to assign, it has ", spec_.elements);
  const Lock lock(mutex_);
  std::ranges::copy(weights, weights_.get());
}

void Parameter::copy_out(std::span<float> weights, std::span<float> state) const {
  assert(weights.size() == spec_.elements && state.size() == state_size_);
  const Lock lock(mutex_);
  std::copy_n(weights_.get(), spec_.elements, weights.begin());
  std::copy_n(state_.get(), state_size_, state.begin());
}

void Parameter::copy_in(std::span<const float> weights, std::span<const float> state) {
  check<DataError>(weights.size() == spec_.elements && state.size() == state_size_, "parameter '",
                   spec_.name, "': ", weights.size(), " weights and a state of ", state.size(),
                   ", expected ", spec_.elements, " and ", state_size_);
  const Lock lock(mutex_);
  std::ranges::copy(weights, weights_.get());
  std::ranges::copy(state, state_.get());
}

Parameter::Floats Parameter::aligned_floats(size_t n) {
  constexpr size_t kAlignment = 64;  // bytes: a cache line, and the widest vector
  const size_t bytes = (n * sizeof(float) / kAlignment + 1) * kAlignment;
  Floats floats(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)),
                [](float* p) { std::free(p); });
  if (floats == nullptr) throw std::bad_alloc();
  std::fill_n(floats.get(), n, 0.0F);
  return floats;
}

}  // namespace argosy::ps

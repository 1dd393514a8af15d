#include "argosy/train/finite_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "argosy/base/error.h"
#include "argosy/graph/sum_over_ranks.h"

namespace argosy {
namespace {

constexpr float kLargest = 0x1p64F;

bool all_below(const Tensor& value) {
  const auto below = [](auto x) { return std::abs(x) < kLargest; };  // NaN is not
  if (value.dtype() == DType::f32) return std::ranges::all_of(value.as<float>(), below);
  if (value.dtype() == DType::f64) return std::ranges::all_of(value.as<double>(), below);
  return true;
}

/// "nan at 3 of 6", of a tensor that holds such a value.
std::string shown(const Tensor& value) {
  const float bound = all_finite(value) ? kLargest : std::numeric_limits<float>::infinity();
  const auto found = [bound](auto values) {
    const auto at =
        std::ranges::find_if_not(values, [bound](auto x) { return std::abs(x) < bound; });
    return fmt::format("{} at {} of {}", *at, at - values.begin(), values.size());
  };
  return value.dtype() == DType::f64 ? found(value.as<double>()) : found(value.as<float>());
}

}  // namespace

bool FiniteCheck::in_range(const Tensor& loss) { return all_below(loss); }

FiniteCheck::FiniteCheck(const Plan& plan, VarId loss, CheckNan policy)
    : plan_(plan), loss_(loss), policy_(policy), looks_at_(plan.worker.vars.size()) {
  if (policy == CheckNan::off) return;
  if (loss) looks_at_[loss.index()] = true;
  for (const Edge& edge : plan.edges) looks_at_[edge.value.index()] = true;
}

std::string FiniteCheck::role_of(VarId id) const {
  if (id == loss_) return "the loss";
  const auto edge = std::ranges::find(plan_.edges, id, &Edge::value);
  const std::string& name = plan_.worker.var(edge->var).name;
  if (edge->kind == VarKind::state) return fmt::format("the next value of state '{}'", name);
  return fmt::format("the gradient of {} '{}'", edge->kind == VarKind::rows ? "table" : "parameter",
                     name);
}

/// Looks at inputs, then parameters and rows as fetched, then node by node.
std::string FiniteCheck::first_of(const Batch& batch, const RunSeed& seed) const {
  for (const VarDesc& desc : plan_.worker.vars) {
    const auto feed = batch.feeds.find(desc.name);
    if (desc.kind == VarKind::temp || feed == batch.feeds.end() || all_below(feed->second))
      continue;
    const char* const what = desc.kind == VarKind::input   ? "input"
                             : desc.kind == VarKind::rows  ? "rows of table"
                             : desc.kind == VarKind::param ? "parameter"
                                                           : "state";
    return fmt::format("{} '{}' had {} before the step", what, desc.name, shown(feed->second));
  }
  // The other ranks would have to take part.
  if (!sum_over_ranks_sizes(plan_.worker).empty()) return "";
  try {
    Executor(plan_.worker, {.check_nan = true}).run(batch.feeds, {}, seed);
  } catch (const DataError& e) {
    return e.what();
  }
  return "";
}

void FiniteCheck::report(const Batch& batch, VarId id, const Tensor& value, const RunSeed& seed) {
  if (batch.size == 0) return;  // a mean over no instances; the lane drops it
  const bool again = told_step_.exchange(batch.step) == batch.step;
  if (policy_ == CheckNan::warn && again) return;
  const uint64_t steps = ++steps_;
  if (policy_ == CheckNan::warn && !std::has_single_bit(steps)) return;
  const std::string first = first_of(batch, seed);
  const std::string text = fmt::format("step {}: {} is {}: {}{}{}", batch.step, role_of(id),
                                       all_finite(value) ? "beyond 2^64" : "not finite",
                                       shown(value), first.empty() ? "" : "; first: ", first);
  if (policy_ == CheckNan::fail) throw DataError(text);
  fmt::print(stderr, "warning: {}{}\n", text,
             steps == 1 ? "" : fmt::format(" ({} such steps so far)", steps));
}

}  // namespace argosy

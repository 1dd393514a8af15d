#include "argosy/ps/step_group.h"

#include <algorithm>
#include <utility>

namespace argosy::ps {

std::vector<uint32_t> StepGroup::missing() const {
  std::vector<uint32_t> workers;
  for (uint32_t i = 0; i < members_.size(); ++i)
    if (members_[i] && !held_.contains(i)) workers.push_back(i);
  return workers;
}

std::vector<std::shared_ptr<TakenExchange>> StepGroup::take_if_complete() {
  std::vector<std::shared_ptr<TakenExchange>> step;
  if (!missing().empty()) return step;
  for (auto& [worker, held] : std::exchange(held_, {})) step.push_back(std::move(held.exchange));
  return step;
}

std::optional<StepGroup::Wait> StepGroup::wait() const {
  Wait wait{.held = {}, .missing = missing(), .since = {}};
  if (held_.empty() || wait.missing.empty()) return std::nullopt;
  wait.since = held_.begin()->second.since;
  for (const auto& [worker, held] : held_) {
    wait.held.push_back(worker);
    wait.since = std::min(wait.since, held.since);
  }
  return wait;
}

}  // namespace argosy::ps

#include "argosy/ps/roster.h"

#include <algorithm>
#include <utility>

namespace argosy::ps {

Roster::Roster(uint32_t workers, const RosterLimits& limits, Env::Time now)
    : limits_(limits), ticked_(now), workers_(workers, Worker{.since = now, .heard = now}) {}

bool Roster::all_have_come() const {
  return std::ranges::all_of(
      workers_, [](const Worker& worker) { return worker.has_come || worker.state > State::lost; });
}

bool Roster::all_are_gone() const {
  return std::ranges::all_of(workers_,
                             [](const Worker& worker) { return worker.state == State::gone; });
}

Roster::State Roster::came(uint32_t number, Env::Time now) {
  Worker& worker = workers_[number];
  worker.has_come = true;
  worker.has_left = false;
  worker.since = worker.heard = now;
  return std::exchange(worker.state, State::here);
}

void Roster::lost(uint32_t number, Env::Time now) {
  Worker& worker = workers_[number];
  if (worker.state != State::here) return;
  worker.state = State::lost;
  worker.since = now;
}

bool Roster::left(uint32_t number) {
  Worker& worker = workers_[number];
  worker.has_left = true;
  return std::exchange(worker.state, State::gone) <= State::lost;
}

/// Time that was nobody's fault.
void Roster::leave_out(Env::Duration time) {
  for (Worker& worker : workers_) {
    worker.since += time;
    worker.heard += time;
  }
}

Roster::Changes Roster::tick(Env::Time now) {
  const Env::Duration pause = now - std::exchange(ticked_, now);
  if (pause > std::min(limits_.quiet, limits_.grace) / 2) leave_out(pause);
  Changes changes;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    const Env::Duration so_long = now - worker.since;
    const auto becomes = [&](State state, std::vector<uint32_t>& list) {
      worker.state = state;
      worker.since = now;
      list.push_back(i);
    };
    switch (worker.state) {
      case State::awaited:
        if (so_long > limits_.come_within) becomes(State::gone, changes.absent);
        break;
      case State::here:
        if (now - worker.heard <= limits_.quiet) break;
        worker.may_return_for = std::max(limits_.give_up, limits_.away);
        becomes(State::dead, changes.silent);
        break;
      case State::lost:
        worker.may_return_for = limits_.away;
        if (so_long > limits_.grace)
          becomes(limits_.away > Env::Duration(0) ? State::dead : State::gone, changes.dead);
        break;
      case State::dead:
        if (so_long > worker.may_return_for) becomes(State::gone, changes.gone);
        break;
      case State::gone:
        break;
    }
  }
  return changes;
}

}  // namespace argosy::ps

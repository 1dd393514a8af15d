#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "argosy/base/env.h"

namespace argosy::ps {

struct TakenExchange;

/// The workers that end each step together, and the exchanges held for the current one. Thread
/// safety: none.
class StepGroup {
 public:
  explicit StepGroup(uint32_t workers) : members_(workers, true) {}

  bool is_member(uint32_t worker) const { return members_[worker]; }
  void join(uint32_t worker) { members_[worker] = true; }
  /// An exchange already held still counts.
  void leave(uint32_t worker) { members_[worker] = false; }
  /// Drops what an earlier incarnation has sent. False if nothing was held.
  bool forget(uint32_t worker) { return held_.erase(worker) > 0; }
  void hold(uint32_t worker, std::shared_ptr<TakenExchange> exchange, Env::Time now) {
    held_.emplace(worker, Held{std::move(exchange), now});
  }
  bool holds(uint32_t worker) const { return held_.contains(worker); }

  /// If every member has ended the step: its exchanges in worker order, no longer held.
  std::vector<std::shared_ptr<TakenExchange>> take_if_complete();
  struct Wait {
    std::vector<uint32_t> held, missing;
    Env::Time since;
  };
  /// Who waits for whom, if anyone does.
  std::optional<Wait> wait() const;

 private:
  struct Held {
    std::shared_ptr<TakenExchange> exchange;
    Env::Time since;
  };
  std::vector<uint32_t> missing() const;

  std::vector<bool> members_;
  std::map<uint32_t, Held> held_;
};

}  // namespace argosy::ps

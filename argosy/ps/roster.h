#pragma once

#include <cstdint>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/net/tolerance.h"

namespace argosy::ps {

/// How long a server waits for workers before it goes on without them.
struct RosterLimits {
  Env::Duration come_within = Tolerance().give_up;  // the first time
  Env::Duration quiet = Tolerance().quiet;          // without a frame, though it has a link
  Env::Duration grace = Tolerance().quiet;          // without a link
  // How long a dead worker may still come back:
  Env::Duration away = {};                      // if its link was lost: it may be restarted
  Env::Duration give_up = Tolerance().give_up;  // if it fell silent: it may only be stopped
};

/// Which workers of a job are alive, slow or dead. Events in, changes out; the caller gives the
/// time. Time without a tick() means that this process was not running, and is not held against
/// workers. Thread safety: none.
///
///                  +---------- quiet ----------+
///                  |                           v
///   awaited --came--> here --lost--> lost --grace--> dead --away, give_up--> gone
///      |                ^              |               |                      |
///      |                +---- came ----+---- came -----+-------- came --------+
///      +--come_within--> gone                                    left: gone for good
class Roster {
 public:
  enum class State : uint8_t {
    awaited,  // has never come
    here,     // has a link
    lost,     // had one; others wait for it
    dead,     // no longer waited for, but it may come back
    gone,     // it has left, or has been dead for too long
  };

  Roster(uint32_t workers, const RosterLimits& limits, Env::Time now);

  uint32_t size() const { return static_cast<uint32_t>(workers_.size()); }
  State state(uint32_t worker) const { return workers_[worker].state; }
  bool has_come(uint32_t worker) const { return workers_[worker].has_come; }
  /// Whether others still wait for it.
  bool is_awaited(uint32_t worker) const { return state(worker) <= State::lost; }
  bool has_left(uint32_t worker) const { return workers_[worker].has_left; }
  bool may_return(uint32_t worker) const { return state(worker) != State::gone; }
  bool all_have_come() const;
  bool all_are_gone() const;

  /// It has said hello. Returns its previous state.
  State came(uint32_t worker, Env::Time now);
  void heard(uint32_t worker, Env::Time now) { workers_[worker].heard = now; }
  void lost(uint32_t worker, Env::Time now);
  /// It leaves voluntarily. False if nobody waited for it any more.
  bool left(uint32_t worker);

  struct Changes {
    std::vector<uint32_t> silent;  // dead because nothing was heard: cut their links
    std::vector<uint32_t> absent;  // never came, now taken for dead
    std::vector<uint32_t> dead;    // lost for too long
    std::vector<uint32_t> gone;    // dead for too long
    bool any() const {
      return !silent.empty() || !absent.empty() || !dead.empty() || !gone.empty();
    }
  };
  /// Call it several times per `quiet`.
  Changes tick(Env::Time now);

 private:
  struct Worker {
    State state = State::awaited;
    bool has_come = false, has_left = false;
    Env::Time since, heard;             // of the state
    Env::Duration may_return_for = {};  // while it is dead
  };
  void leave_out(Env::Duration time);

  const RosterLimits limits_;
  Env::Time ticked_;
  std::vector<Worker> workers_;
};

}  // namespace argosy::ps

#pragma once

#include <memory>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/net/transport.h"

namespace argosy {

/// How a simulated network misbehaves, for each frame; probabilities.
struct Faults {
  double drop = 0, duplicate = 0, reorder = 0, truncate = 0, flip = 0;
  double cut = 0;  // the link breaks: both sides are told
  Env::Duration min_delay = std::chrono::microseconds(50);
  Env::Duration max_delay = std::chrono::microseconds(200);
};

/// A whole cluster on one thread, from one seed: simulated time, timers and network. Everything
/// happens in run_until(); time jumps to the next event. Files are kept in memory, one disk for all
/// hosts. The same seed and the same calls give the same run. Thread safety: none.
class Simulation {
 public:
  explicit Simulation(uint64_t seed, const Faults& faults = {});
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  Env& env();
  /// The network as one host sees it; `host` is what others connect to.
  Transport& host(const std::string& name);
  /// Takes a host away: its links close for the others, nothing more is delivered to it or comes
  /// from it, and its timers (those set through host_env) are dropped.
  void crash(const std::string& name);
  Env& host_env(const std::string& name);
  void set_faults(const Faults& faults);

  /// Runs events until `done` says so; false if `limit` of simulated time passed before, or nothing
  /// was left to happen.
  bool run_until(const std::function<bool()>& done, Env::Duration limit);

 private:
  class World;
  std::unique_ptr<World> world_;
};

}  // namespace argosy

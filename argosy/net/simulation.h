#pragma once

#include <memory>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/net/transport.h"
#include "argosy/world/simulated_threads.h"

namespace argosy {

class SimulatedDisk;

/// How a simulated network misbehaves, for each frame; probabilities.
struct Faults {
  double drop = 0, duplicate = 0, reorder = 0, truncate = 0, flip = 0;
  double cut = 0;  // the link breaks: both sides are told
  Env::Duration min_delay = std::chrono::microseconds(50);
  Env::Duration max_delay = std::chrono::microseconds(200);
};

/// A whole cluster from one seed: simulated time, timers, network and threads. Everything happens
/// in run_until() and run(), or while the thread that made the simulation waits for something; time
/// jumps to the next event. Files are kept in memory, one disk for all hosts. The same seed and the
/// same calls give the same run. Thread safety: none, but its threads take turns
/// (world/simulated_threads.h): each may call everything except run_until() and run().
class Simulation {
 public:
  explicit Simulation(uint64_t seed, const Faults& faults = {}, const Pace& pace = {});
  /// Ends remaining threads by an exception: whatever they use must still exist.
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  Env& env();
  /// The network as one host sees it; `host` is what others connect to.
  Transport& host(const std::string& name);
  /// Takes a host away: its links close for the others, nothing more is delivered to it or comes
  /// from it, its timers (those set through host_env) are dropped, and its threads are unwound. Its
  /// files tear if the machine goes down; kill -9 of a process leaves what it has written.
  enum class Crash : uint8_t { process, machine };
  void crash(const std::string& name, Crash what = Crash::machine);
  Env& host_env(const std::string& name);
  void set_faults(const Faults& faults);
  SimulatedDisk& disk();

  /// A process of a host, or of none (""): a thread that runs beside what is there already. The
  /// threads that it starts (base/thread.h) are of the same host.
  void start_thread(const std::string& host, const std::string& name, std::function<void()> run);

  /// Until all that was started by start_thread has ended. Throws what a thread throws, and an
  /// Error that says what each waits for, where they wait for ever or for longer than `limit` of
  /// simulated time. No thread is left if it throws.
  void run(Env::Duration limit);
  /// Runs threads and events until `done` says so; false if `limit` of simulated time passed
  /// before, or nothing was left to happen. Throws as run(), and leaves the threads as they are.
  bool run_until(const std::function<bool()>& done, Env::Duration limit);

 private:
  class World;
  std::unique_ptr<World> world_;
};

}  // namespace argosy

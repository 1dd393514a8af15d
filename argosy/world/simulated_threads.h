#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "argosy/base/scheduler.h"
#include "argosy/world/dice.h"
#include "argosy/world/event_queue.h"

namespace argosy {

/// How the threads of a simulation are interrupted, at each lock, unlock and wait; probabilities.
struct Pace {
  double yield = 0.1;   // others go on
  double stall = 0.01;  // it stands still for a while, so that events overtake it
  Env::Duration longest_stall = std::chrono::milliseconds(1);
};

/// The threads of a simulated world: real ones, of which exactly one runs at any time, the holder
/// of the baton. One that blocks hands it on, to a thread that the dice choose among those that can
/// go on; the clock stands still until there is none. Invariants:
/// 1. The main thread, which made this, chooses: a thread gives the baton back to it.
/// 2. Events run on the main thread, one at a time, and are not interrupted. Where one blocks,
///    threads go on until it can; other events wait.
/// 3. Everything here is used by the holder of the baton only.
/// 4. A thread that was told to end (its host has crashed, the simulation is over) leaves its next
///    wait by the exception Ended. While it unwinds it waits as others do.
class SimulatedThreads final : public Scheduler {
 public:
  /// Thrown through threads that end. Not a std::exception: nobody should handle it.
  struct Ended {};

  SimulatedThreads(EventQueue& events, uint64_t seed, const Pace& pace);
  ~SimulatedThreads() override;
  SimulatedThreads(const SimulatedThreads&) = delete;
  SimulatedThreads& operator=(const SimulatedThreads&) = delete;

  Time now() override { return events_.now(); }
  bool lock(std::mutex& mutex, Patience patience) override;
  void unlock(std::mutex& mutex) override;
  bool wait(const void* place, std::mutex& mutex, Time deadline, const SourceLoc& where) override;
  void wake(const void* place, Wake wake) override;
  uint64_t start(std::string name, std::function<void()> run) override;
  void join(uint64_t thread) override;

  /// A thread that stands for a process of the owner: what it starts by itself are its helpers.
  void start_process(EventQueue::Owner whose, std::string name, std::function<void()> run);
  /// Throws ConfigError inside of run_until().
  void check_may_run();
  /// Threads and events, until `done` says so; false if `limit` passed before, or nothing was left
  /// to happen. Throws what a thread or an event throws, and an Error where processes are left that
  /// wait for ever.
  bool run_until(const std::function<bool()>& done, Env::Duration limit);
  /// Processes that have not ended.
  size_t processes() const;
  /// What each thread waits for, in one line.
  std::string waits() const;

  /// Ends all threads of an owner, or all of them, except the caller; returns when they are gone.
  void end(EventQueue::Owner whose);
  void end_all();
  /// Leaves the calling thread, if it was among them.
  void leave_if_ended();

 private:
  enum class State : uint8_t { running, ready, waiting, over };
  enum class What : uint8_t { nothing, mutex, signal, thread };
  struct Thread {
    uint64_t number = 0;  // 0: the main thread
    std::string name;
    EventQueue::Owner whose = nullptr;
    bool helper = false;  // was started by another thread
    State state = State::running;
    // While it waits:
    What what = What::nothing;
    const void* place = nullptr;  // the mutex, or where it is woken
    uint64_t other = 0;           // the thread whose end it waits for
    SourceLoc where;
    Time deadline = kNever;
    bool woken = false;
    bool ended = false;   // was told to end
    bool broken = false;  // and may leave a lock
    std::condition_variable turn;
    std::jthread thread;
  };
  enum class Next : uint8_t { something, limit, nothing };

  Thread& self() { return *holder_; }
  Thread* find(uint64_t number) const;
  Thread& add(EventQueue::Owner whose, std::string name, std::function<void()> run);
  void pass(Thread& thread);
  enum class Deadlock : uint8_t { waits, throws };
  void acquire(Thread& thread, std::mutex& mutex, Deadlock deadlock);
  bool break_deadlock();
  void release(std::mutex& mutex);
  void block(Thread& thread, What what, Time deadline = kNever);
  void wait_on_main();
  bool others_can_go_on() const;
  void hand_baton(Thread& from, Thread& to);
  void body(Thread& thread, const std::function<void()>& run);
  void resume(Thread& thread);
  bool may_run_events() const { return !events_.running() && ending_ == 0; }
  Next step(Time limit);
  void time_out();
  template <class Picked>
  void end_if(const Picked& picked);
  void throw_if_ended(const Thread& thread) const;
  std::string wait_of(const Thread& thread) const;

  EventQueue& events_;
  Dice dice_;
  const Pace pace_;
  Thread main_;
  std::vector<std::unique_ptr<Thread>> threads_;  // in the order of their starts
  uint64_t last_number_ = 0;
  std::unordered_map<const std::mutex*, uint64_t> owners_;  // of locked mutexes: threads
  std::exception_ptr failure_;                              // of a thread
  int ending_ = 0;                                          // calls of end that have not returned
  std::vector<Thread*> ready_;                              // as step() finds them
  std::mutex baton_;
  Thread* holder_ = &main_;  // changes under baton_
};

}  // namespace argosy

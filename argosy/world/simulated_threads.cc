#include "argosy/world/simulated_threads.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "argosy/base/error.h"

namespace argosy {
namespace {

// The main thread waits no longer than this for threads and events that go on for ever, as timers
// that set themselves again do.
constexpr auto kLongestWait = std::chrono::hours(24);

}  // namespace

SimulatedThreads::SimulatedThreads(EventQueue& events, uint64_t seed, const Pace& pace)
    : events_(events), dice_(seed, 3), pace_(pace) {
  main_.name = "main";
  set_current(this);
}

SimulatedThreads::~SimulatedThreads() {
  end_all();
  if (current() == this) set_current(nullptr);
}

// The baton.

/// Returns when somebody hands it back.
void SimulatedThreads::hand_baton(Thread& from, Thread& to) {
  std::unique_lock lock(baton_);
  holder_ = &to;
  to.turn.notify_one();
  from.turn.wait(lock, [&] { return holder_ == &from; });
}

uint64_t SimulatedThreads::start(std::string name, std::function<void()> run) {
  // Threads started by an event belong to the owner of the event.
  const bool in_event = &self() == &main_ && events_.running();
  Thread& thread =
      add(in_event ? events_.running_for() : self().whose, std::move(name), std::move(run));
  thread.helper = true;
  return thread.number;
}

void SimulatedThreads::start_process(EventQueue::Owner whose, std::string name,
                                     std::function<void()> run) {
  add(whose, std::move(name), std::move(run));
}

SimulatedThreads::Thread& SimulatedThreads::add(EventQueue::Owner whose, std::string name,
                                                std::function<void()> run) {
  Thread& thread = *threads_.emplace_back(std::make_unique<Thread>());
  thread.number = ++last_number_;
  thread.name = std::move(name);
  thread.whose = whose;
  thread.state = State::ready;
  thread.ended = self().ended;
  thread.thread = std::jthread([this, &thread, run = std::move(run)] { body(thread, run); });
  return thread;
}

size_t SimulatedThreads::processes() const {
  return static_cast<size_t>(
      std::ranges::count_if(threads_, [](const auto& thread) { return !thread->helper; }));
}

void SimulatedThreads::body(Thread& thread, const std::function<void()>& run) {
  {
    std::unique_lock lock(baton_);
    thread.turn.wait(lock, [&] { return holder_ == &thread; });
  }
  set_current(this);
  try {
    if (!thread.ended) run();
  } catch (const Ended&) {
  } catch (...) {
    if (!thread.ended && failure_ == nullptr) failure_ = std::current_exception();
  }
  thread.state = State::over;
  for (const auto& other : threads_)
    if (other->what == What::thread && other->other == thread.number) other->state = State::ready;
  if (main_.what == What::thread && main_.other == thread.number) main_.state = State::ready;
  const std::unique_lock lock(baton_);
  holder_ = &main_;
  main_.turn.notify_one();
}

/// By the main thread: lets another one run until it gives the baton back.
void SimulatedThreads::resume(Thread& thread) {
  thread.state = State::running;
  if (&thread == &main_) return;
  hand_baton(main_, thread);
  if (thread.state != State::over) return;
  thread.thread.join();
  std::erase_if(threads_, [&](const auto& each) { return each.get() == &thread; });
}

/// By the thread itself: until it is ready, and chosen.
void SimulatedThreads::block(Thread& thread, What what, Time deadline) {
  thread.state = State::waiting;
  thread.what = what;
  thread.deadline = deadline;
  thread.woken = false;
  if (&thread == &main_)
    wait_on_main();
  else
    hand_baton(thread, main_);
  thread.what = What::nothing;
  thread.deadline = kNever;
}

/// The main thread waits by running the others.
void SimulatedThreads::wait_on_main() {
  const Time limit = main_.deadline == kNever ? now() + kLongestWait : kNever;
  std::exception_ptr failure;
  while (main_.state != State::running && failure == nullptr) {
    try {
      if (step(limit) != Next::something) fail<Error>("the simulation stands still: ", waits());
    } catch (...) {  // or what an event has thrown
      failure = std::current_exception();
    }
    // What a thread has thrown: only waits can throw that, locks and joins are left to their end.
    if (failure_ != nullptr && main_.what == What::signal)
      failure = std::exchange(failure_, nullptr);
  }
  main_.state = State::running;
  if (failure == nullptr) return;
  main_.what = What::nothing;
  main_.deadline = kNever;
  std::rethrow_exception(failure);
}

/// Does what is next: a thread goes on, an event happens, or time passes until one of them can.
SimulatedThreads::Next SimulatedThreads::step(Time limit) {
  ready_.clear();
  for (const auto& thread : threads_)
    if (thread->state == State::ready) ready_.push_back(thread.get());
  if (main_.state == State::ready) ready_.push_back(&main_);
  // Those that end go first, as nobody should meet a host that has crashed by half, and the
  // youngest of them before the others: what helpers work on is often on the stack of who started
  // them.
  const auto youngest = std::ranges::max_element(
      ready_, {}, [](const Thread* thread) { return thread->ended ? thread->number : 0; });
  const bool ends = youngest != ready_.end() && (*youngest)->ended;
  if (ends) ready_ = {*youngest};
  const auto event = may_run_events() ? events_.next() : std::nullopt;
  const bool due = !ends && event && *event <= now();
  if (const size_t choices = ready_.size() + (due ? 1 : 0); choices > 0) {
    const size_t chosen = choices == 1 ? 0 : dice_.below(choices);
    chosen < ready_.size() ? resume(*ready_[chosen]) : events_.run_next();
    return Next::something;
  }
  Time first = event.value_or(kNever);
  for (const auto& thread : threads_) first = std::min(first, thread->deadline);
  first = std::min(first, main_.deadline);
  if (first == kNever) return ending_ > 0 && break_deadlock() ? Next::something : Next::nothing;
  events_.advance(std::min(first, limit));
  if (first > limit) return Next::limit;
  time_out();
  return Next::something;
}

void SimulatedThreads::time_out() {
  const auto look_at = [&](Thread& thread) {
    if (thread.state == State::waiting && thread.deadline <= now()) thread.state = State::ready;
  };
  for (const auto& thread : threads_) look_at(*thread);
  look_at(main_);
}

void SimulatedThreads::check_may_run() {
  check<ConfigError>(&self() == &main_ && !events_.running(),
                     "a simulation cannot be run by an event or a thread of its own");
}

bool SimulatedThreads::run_until(const std::function<bool()>& done, Env::Duration limit) {
  check_may_run();
  set_current(this);
  const Time end = now() + limit;
  while (!done()) {
    const Next next = step(end);
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
    if (next == Next::limit) return false;
    if (next == Next::something) continue;
    if (processes() > 0) fail<Error>("the simulation stands still: ", waits());
    return false;
  }
  return true;
}

// What threads call.

/// A point at which a thread may be interrupted.
void SimulatedThreads::pass(Thread& thread) {
  if (&thread == &main_ || thread.ended) return;
  if (dice_.hit(pace_.stall)) {
    const auto most = static_cast<uint64_t>(pace_.longest_stall.count());
    block(thread, What::nothing, now() + Env::Duration(dice_.below(most + 1)));
  } else if (dice_.hit(pace_.yield) && others_can_go_on()) {
    thread.state = State::ready;
    hand_baton(thread, main_);
  }
}

bool SimulatedThreads::others_can_go_on() const {
  const auto ready = [](const auto& thread) { return thread->state == State::ready; };
  return std::ranges::any_of(threads_, ready) || main_.state == State::ready ||
         (may_run_events() && events_.next().value_or(kNever) <= events_.now());
}

bool SimulatedThreads::lock(std::mutex& mutex, Patience patience) {
  Thread& thread = self();
  pass(thread);
  if (patience == Patience::endless) {
    acquire(thread, mutex, Deadlock::throws);
    return true;
  }
  if (!mutex.try_lock()) return false;
  owners_[&mutex] = thread.number;
  return true;
}

void SimulatedThreads::acquire(Thread& thread, std::mutex& mutex, Deadlock deadlock) {
  while (!mutex.try_lock()) {
    if (!owners_.contains(&mutex)) {  // a real thread has it, which gives it back by itself
      mutex.lock();
      break;
    }
    thread.place = &mutex;
    block(thread, What::mutex);
    if (thread.broken && deadlock == Deadlock::throws) throw_if_ended(thread);
  }
  owners_[&mutex] = thread.number;
}

void SimulatedThreads::release(std::mutex& mutex) {
  owners_.erase(&mutex);
  mutex.unlock();
  const auto look_at = [&](Thread& thread) {
    if (thread.what == What::mutex && thread.place == &mutex) thread.state = State::ready;
  };
  for (const auto& thread : threads_) look_at(*thread);
  look_at(main_);
}

void SimulatedThreads::unlock(std::mutex& mutex) {
  release(mutex);
  pass(self());
}

bool SimulatedThreads::wait(const void* place, std::mutex& mutex, Time deadline,
                            const SourceLoc& where) {
  Thread& thread = self();
  pass(thread);
  throw_if_ended(thread);
  thread.place = place;
  thread.where = where;
  release(mutex);
  try {
    block(thread, What::signal, deadline);
  } catch (...) {  // on the main thread, when the others have failed
    acquire(thread, mutex, Deadlock::waits);
    throw;
  }
  const bool woken = thread.woken;
  acquire(thread, mutex, Deadlock::waits);
  throw_if_ended(thread);
  return woken;
}

void SimulatedThreads::wake(const void* place, Wake wake) {
  std::vector<Thread*> there;
  const auto look_at = [&](Thread& thread) {
    if (thread.state == State::waiting && thread.what == What::signal && thread.place == place)
      there.push_back(&thread);
  };
  for (const auto& thread : threads_) look_at(*thread);
  look_at(main_);
  if (wake == Wake::one && there.size() > 1) there = {there[dice_.below(there.size())]};
  for (Thread* const thread : there) {
    thread->state = State::ready;
    thread->woken = true;
  }
}

SimulatedThreads::Thread* SimulatedThreads::find(uint64_t number) const {
  const auto found =
      std::ranges::find(threads_, number, [](const auto& thread) { return thread->number; });
  return found == threads_.end() ? nullptr : found->get();
}

void SimulatedThreads::join(uint64_t number) {
  Thread& thread = self();
  while (find(number) != nullptr) {
    thread.other = number;
    block(thread, What::thread);
  }
}

// The end of threads.

void SimulatedThreads::throw_if_ended(const Thread& thread) const {
  if (thread.ended && std::uncaught_exceptions() == 0) throw Ended();
}

void SimulatedThreads::leave_if_ended() { throw_if_ended(self()); }

template <class Picked>
void SimulatedThreads::end_if(const Picked& picked) {
  for (const auto& thread : threads_) {
    if (thread->ended || !picked(*thread)) continue;
    thread->ended = true;
    const bool waits = thread->what == What::signal || thread->what == What::nothing;
    if (thread->state == State::waiting && waits) thread->state = State::ready;
  }
  ++ending_;
  const uint64_t own = self().number;
  const auto left = [&](const auto& thread) { return thread->number != own && picked(*thread); };
  while (true) {
    const auto found = std::ranges::find_if(threads_, left);
    if (found == threads_.end()) break;
    join((*found)->number);
  }
  --ending_;
}

/// Where threads that end wait for each other's mutexes, they leave their locks too, which they do
/// not otherwise: locks of destructors must not throw. False: there are none.
bool SimulatedThreads::break_deadlock() {
  bool any = false;
  for (const auto& thread : threads_) {
    if (!thread->ended || thread->broken || thread->what != What::mutex) continue;
    thread->broken = any = true;
    thread->state = State::ready;
  }
  return any;
}

void SimulatedThreads::end(EventQueue::Owner whose) {
  end_if([whose](const Thread& thread) { return thread.whose == whose; });
}

void SimulatedThreads::end_all() {
  end_if([](const Thread&) { return true; });
}

// Reports.

std::string SimulatedThreads::wait_of(const Thread& thread) const {
  const auto name_of = [&](uint64_t number) {
    const Thread* const found = number == 0 ? &main_ : find(number);
    return found == nullptr ? std::string("a thread that has ended") : found->name;
  };
  std::ostringstream text;
  text << thread.name;
  if (thread.what == What::mutex) {
    const auto owner = owners_.find(static_cast<const std::mutex*>(thread.place));
    text << " waits for a mutex"
         << (owner == owners_.end() ? "" : " that " + name_of(owner->second) + " has locked");
  } else if (thread.what == What::signal) {
    text << " waits at " << thread.where;
  } else if (thread.what == What::thread) {
    text << " waits for the end of " << name_of(thread.other);
  } else {
    text << " can go on";
  }
  return text.str();
}

std::string SimulatedThreads::waits() const {
  std::string all;
  for (const auto& thread : threads_) all += (all.empty() ? "" : "; ") + wait_of(*thread);
  if (main_.state != State::running) all += (all.empty() ? "" : "; ") + wait_of(main_);
  return all.empty() ? "no thread is left" : all;
}

}  // namespace argosy

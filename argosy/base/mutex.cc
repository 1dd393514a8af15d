#include "argosy/base/mutex.h"

namespace argosy {

void CondVar::wait(Mutex& mutex, const SourceLoc& where) {
  if (Scheduler* const scheduler = Scheduler::current()) {
    scheduler->wait(this, mutex.mutex_, Scheduler::kNever, where);
    return;
  }
  std::unique_lock lock(mutex.mutex_, std::adopt_lock);
  changed_.wait(lock);
  lock.release();
}

bool CondVar::wait_until(Mutex& mutex, Time deadline, const SourceLoc& where) {
  if (Scheduler* const scheduler = Scheduler::current())
    return scheduler->wait(this, mutex.mutex_, deadline, where);
  std::unique_lock lock(mutex.mutex_, std::adopt_lock);
  const bool in_time = changed_.wait_until(lock, deadline) == std::cv_status::no_timeout;
  lock.release();
  return in_time;
}

// Threads of a simulation wake real ones too, but not the other way round: a real thread does not
// know which simulation waits.
void CondVar::notify(Scheduler::Wake wake) {
  const bool all = wake == Scheduler::Wake::all;
  all ? changed_.notify_all() : changed_.notify_one();
  // A waiter with a token creates it under the mutex, before the change this notifies of.
  if (auto* const stoppable = stoppable_.load(std::memory_order_acquire))
    all ? stoppable->notify_all() : stoppable->notify_one();
  if (Scheduler* const scheduler = Scheduler::current()) scheduler->wake(this, wake);
}

std::condition_variable_any& CondVar::stoppable() {
  if (owned_ == nullptr) {
    owned_ = std::make_unique<std::condition_variable_any>();
    stoppable_.store(owned_.get(), std::memory_order_release);
  }
  return *owned_;
}

}  // namespace argosy

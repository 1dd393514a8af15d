#include "argosy/base/thread.h"

#include "argosy/base/mutex.h"

namespace argosy {

void Thread::join() {
  if (Scheduler* const scheduler = std::exchange(scheduler_, nullptr))
    scheduler->join(number_);
  else
    real_.join();
}

void Thread::end() {
  if (!joinable()) return;
  request_stop();
  join();
}

void sleep_for(Scheduler::Time::duration duration) {
  Mutex mutex;
  CondVar never;
  const Lock lock(mutex);
  never.wait_for(mutex, duration, [] { return false; });
}

}  // namespace argosy

#include "argosy/base/thread_team.h"

namespace argosy {

ThreadTeam::ThreadTeam(size_t threads) {
  for (size_t i = 1; i < threads; ++i) helpers_.emplace_back("team", [this, i] { help(i); });
}

ThreadTeam::~ThreadTeam() {
  {
    const Lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

void ThreadTeam::run(size_t n, FunctionRef<void(size_t job, size_t thread)> job) {
  {
    const Lock lock(mutex_);
    job_ = job;
    jobs_ = n;
    next_ = 0;
    failure_ = nullptr;
    ++call_;
  }
  changed_.notify_all();
  const Lock lock(mutex_);
  work(0);
  while (busy_ > 0 || next_ < jobs_) changed_.wait(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void ThreadTeam::help(size_t thread) {
  uint64_t seen = 0;
  const Lock lock(mutex_);
  while (true) {
    while (call_ == seen && !ending_) changed_.wait(mutex_);
    if (ending_) return;
    seen = call_;
    work(thread);
  }
}

void ThreadTeam::work(size_t thread) {
  while (next_ < jobs_) {
    const auto job = job_;
    const size_t mine = next_++;
    ++busy_;
    std::exception_ptr failure;
    {
      const Unlocked open(mutex_);
      try {
        job(mine, thread);
      } catch (...) {
        failure = std::current_exception();
      }
    }
    --busy_;
    if (failure && !failure_) {
      failure_ = failure;
      next_ = jobs_;
    }
  }
  if (busy_ == 0) changed_.notify_all();
}

}  // namespace argosy

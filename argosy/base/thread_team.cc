#include "argosy/base/thread_team.h"

namespace argosy {

ThreadTeam::ThreadTeam(size_t threads) {
  for (size_t i = 1; i < threads; ++i)
    helpers_.emplace_back([this, i](const std::stop_token& stop) { help(i, stop); });
}

ThreadTeam::~ThreadTeam() {
  for (std::jthread& helper : helpers_) helper.request_stop();
}

void ThreadTeam::run(size_t n, FunctionRef<void(size_t job, size_t thread)> job) {
  {
    const std::scoped_lock lock(mutex_);
    job_ = job;
    jobs_ = n;
    next_ = 0;
    failure_ = nullptr;
    ++call_;
  }
  changed_.notify_all();
  work(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return busy_ == 0 && next_ >= jobs_; });
  if (failure_) std::rethrow_exception(failure_);
}

void ThreadTeam::help(size_t thread, const std::stop_token& stop) {
  uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [&] { return call_ != seen; })) return;
      seen = call_;
    }
    work(thread);
  }
}

void ThreadTeam::work(size_t thread) {
  std::unique_lock lock(mutex_);
  while (next_ < jobs_) {
    const size_t mine = next_++;
    ++busy_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      job_(mine, thread);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    --busy_;
    if (failure && !failure_) {
      failure_ = failure;
      next_ = jobs_;
    }
  }
  if (busy_ == 0) changed_.notify_all();
}

}  // namespace argosy

#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "argosy/base/function_ref.h"

namespace argosy {

/// Threads that share out the jobs of one call after another. The calling thread is one of them.
class ThreadTeam {
 public:
  explicit ThreadTeam(size_t threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  size_t threads() const { return helpers_.size() + 1; }
  /// Calls job(i, thread) for each i below n, each once, and returns when all are done. Throws what
  /// a job threw; the jobs that had not begun by then are left out.
  void run(size_t n, FunctionRef<void(size_t job, size_t thread)> job);

 private:
  void help(size_t thread, const std::stop_token& stop);
  void work(size_t thread);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  FunctionRef<void(size_t, size_t)> job_;
  size_t jobs_ = 0, next_ = 0, busy_ = 0;
  uint64_t call_ = 0;
  std::exception_ptr failure_;
  std::vector<std::jthread> helpers_;  // last, so that they end first
};

}  // namespace argosy

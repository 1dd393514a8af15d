#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "argosy/base/function_ref.h"
#include "argosy/base/mutex.h"
#include "argosy/base/thread.h"

namespace argosy {

/// Threads that share out the jobs of one call after another. The calling thread is one of them.
class ThreadTeam {
 public:
  explicit ThreadTeam(size_t threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  size_t threads() const { return helpers_.size() + 1; }
  /// Calls job(i, thread) once for each i below n, and returns when all are done. Rethrows a job's
  /// exception; jobs that had not begun by then are left out.
  void run(size_t n, FunctionRef<void(size_t job, size_t thread)> job);

 private:
  void help(size_t thread);
  void work(size_t thread) REQUIRES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  FunctionRef<void(size_t, size_t)> job_ GUARDED_BY(mutex_);
  size_t jobs_ GUARDED_BY(mutex_) = 0, next_ GUARDED_BY(mutex_) = 0, busy_ GUARDED_BY(mutex_) = 0;
  uint64_t call_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ GUARDED_BY(mutex_);
  std::vector<Thread> helpers_;  // last, so that they end first
};

}  // namespace argosy

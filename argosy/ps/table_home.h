#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/mutex.h"
#include "argosy/base/thread.h"

namespace argosy::ps {

/// Threads that read rows from the disk; they start with the first task. Thread safety: full.
class RowReaders {
 public:
  explicit RowReaders(size_t threads) : most_(threads) {}
  /// Waits for tasks that run, and drops the rest.
  ~RowReaders();
  RowReaders(const RowReaders&) = delete;
  RowReaders& operator=(const RowReaders&) = delete;
  void post(std::function<void()> task);

 private:
  void run(const std::stop_token& stop);

  const size_t most_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  std::vector<Thread> threads_ GUARDED_BY(mutex_);
};

struct TierMetrics;

/// Where a table may keep rows that are not in memory. Kinds of tables without such rows ignore it.
struct TableHome {
  static constexpr size_t kReaders = 8;

  Env* env = nullptr;  // null: nowhere
  /// Of this process alone; files of tables that an earlier run has left in it are removed.
  std::string folder = {};
  std::shared_ptr<RowReaders> readers = {};   // none: env->schedule() runs what they would
  std::shared_ptr<TierMetrics> metrics = {};  // none: nobody asks
  std::shared_ptr<const void> keeps = {};     // what goes with the last table that lives there

  /// With reading threads.
  static TableHome in(Env& env, std::string folder);
  /// Below the system's folder for temporary files; goes with its tables.
  static TableHome temporary(Env& env);
};

}  // namespace argosy::ps

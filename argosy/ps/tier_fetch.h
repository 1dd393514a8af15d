#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/ps/row_table.h"

namespace argosy::ps {

/// Reads of the rows of one ticket that are under way. Thread safety: full.
class TierFetch final : public RowFetch {
 public:
  explicit TierFetch(size_t reads) : left_(reads) {}

  bool ended() const {
    const Lock lock(mutex_);
    return left_ == 0;
  }
  /// Of a read that failed; null: none has.
  std::exception_ptr error() const {
    const Lock lock(mutex_);
    return error_;
  }
  void when_ended(std::function<void()> task) {
    {
      const Lock lock(mutex_);
      if (left_ > 0) {
        waiting_.push_back(std::move(task));
        return;
      }
    }
    task();
  }
  /// One read is done.
  void end(std::exception_ptr error) {
    std::vector<std::function<void()>> waiting;
    {
      const Lock lock(mutex_);
      if (error_ == nullptr) error_ = std::move(error);
      if (--left_ > 0) return;
      waiting.swap(waiting_);
    }
    for (const auto& task : waiting) task();
  }

 private:
  mutable Mutex mutex_;
  size_t left_ GUARDED_BY(mutex_);
  std::exception_ptr error_ GUARDED_BY(mutex_);
  std::vector<std::function<void()>> waiting_ GUARDED_BY(mutex_);
};

}  // namespace argosy::ps

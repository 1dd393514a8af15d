#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "argosy/base/mutex.h"

namespace argosy::ps {

class Lanes;

/// A handle on lanes that may already be destroyed. Thread safety: full.
class LanesHandle {
 public:
  explicit LanesHandle(Lanes& lanes) : lanes_(&lanes) {}
  /// The lanes, which are not destroyed before release(); null if they are already gone.
  Lanes* acquire();
  void release();
  /// Hands out null from now on, and waits for every acquire() to be released.
  void close();

 private:
  Mutex mutex_;
  Lanes* lanes_ GUARDED_BY(mutex_);  // null: they are gone
  size_t users_ GUARDED_BY(mutex_) = 0;
  CondVar changed_;
};

/// Wakes a lane that was stuck in one part. Call it once; a no-op if the lanes are gone.
struct Resume {
  std::shared_ptr<LanesHandle> handle = {};
  size_t part = 0;
  uint32_t lane = 0;
  void operator()() const;
};

/// Work cut into parts that share no data.
class PartedWork {
 public:
  virtual ~PartedWork() = default;
  /// Continues a part. False: it is blocked, and will call `resume` when it can continue.
  virtual bool advance(size_t part, const Resume& resume) = 0;
  /// Called after the last part, by the thread that completed it.
  virtual void finish() = 0;
};

/// Runs parted work with one thread per part, so that no data of a part is shared between threads.
/// In every part the work of one lane runs in the order it was posted; blocked work blocks its own
/// lane only. Work of a lane also finishes in that order. Without threads the caller of post() does
/// the work. Thread safety: full.
class Lanes {
 public:
  enum class Size : uint8_t { small, large };

  /// `parts` is at least 1. The destructor waits for running work and drops the rest.
  enum class Threads : uint8_t { none, one_per_part };
  Lanes(size_t parts, Threads threads);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  size_t parts() const { return parts_.size(); }
  /// The caller does small work itself in idle parts: waking a thread would take longer.
  void post(uint32_t lane, std::shared_ptr<PartedWork> work, Size size);

 private:
  friend Resume;
  struct Job {
    std::shared_ptr<PartedWork> work;
    std::shared_ptr<std::atomic<size_t>> parts_left;
  };
  struct Lane {
    std::deque<Job> jobs;
    bool active = false;  // in `ready`, being advanced, or to be resumed
  };
  struct Part {
    Mutex mutex;
    std::unordered_map<uint32_t, Lane> lanes GUARDED_BY(mutex);
    std::deque<uint32_t> ready GUARDED_BY(mutex);
    bool busy GUARDED_BY(mutex) = false;  // a thread is in advance()
    CondVar changed;
  };

  void run(size_t part, const std::stop_token& stop);
  void help(size_t part);
  void advance_next(size_t part);
  void resume(size_t part, uint32_t lane);

  const Threads mode_;
  std::deque<Part> parts_;
  const std::shared_ptr<LanesHandle> handle_;
  std::vector<std::jthread> threads_;  // last, so that they end first
};

}  // namespace argosy::ps

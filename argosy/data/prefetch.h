#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/base/thread.h"
#include "argosy/data/batch.h"

namespace argosy {

/// Runs producers ahead of their consumers, one thread each, with a few batches in store. Batches
/// are taken from the producers in turn, so their order does not depend on the producers' speed.
class Prefetch {
 public:
  /// Fills a batch; false at the end. The token is stopped when no more batches are wanted: a
  /// producer that waits for an outside source watches it.
  using Produce = std::function<bool(Batch& out, const std::stop_token& stop)>;

  /// `first`: the producer to begin with.
  Prefetch(std::vector<Produce> producers, size_t depth, size_t first = 0);
  /// Stops the producers and waits for them.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next batch's content, in exchange for that of `out`; false at the end. Rethrows the
  /// exception of the producer whose turn it is. Any thread.
  bool next(Batch& out);

 private:
  struct Lane {
    std::vector<std::unique_ptr<Batch>> ready, spare;  // ready: oldest first
    bool ended = false;
    std::exception_ptr failure;
  };

  void run(Lane& lane, const Produce& produce, const std::stop_token& stop);
  std::unique_ptr<Batch> spare_of(Lane& lane, const std::stop_token& stop);
  Lane* next_lane() REQUIRES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<Lane>> lanes_ GUARDED_BY(mutex_);
  size_t turn_ GUARDED_BY(mutex_);
  std::vector<Thread> threads_;  // last, so that they end first
};

}  // namespace argosy

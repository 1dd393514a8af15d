#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "argosy/data/batch.h"

namespace argosy {

/// Runs producers ahead of their consumers, each in a thread of its own with a few batches in
/// store. Batches are taken from each producer in turn, so their order depends on the producers
/// and not on how fast they are.
class Prefetch {
 public:
  /// Fills a batch; false at the end. The token says that nobody wants more: a producer that waits
  /// for something outside watches it.
  using Produce = std::function<bool(Batch& out, const std::stop_token& stop)>;

  /// `first`: the producer whose turn it is to begin.
  Prefetch(std::vector<Produce> producers, size_t depth, size_t first = 0);
  /// Stops the producers and waits for them.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next batch's content, in exchange for what `out` held; false at the end. Throws what the
  /// producer whose turn it is threw. Any thread.
  bool next(Batch& out);

 private:
  struct Lane {
    std::vector<std::unique_ptr<Batch>> ready, spare;  // ready: oldest first
    bool ended = false;
    std::exception_ptr failure;
  };

  void run(Lane& lane, const Produce& produce, const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  size_t turn_;
  std::vector<std::jthread> threads_;  // last, so that they end first
};

}  // namespace argosy

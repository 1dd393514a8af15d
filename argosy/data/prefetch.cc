#include "argosy/data/prefetch.h"

#include <algorithm>

#include "argosy/base/error.h"

namespace argosy {

Prefetch::Prefetch(std::vector<Produce> producers, size_t depth, size_t first) : turn_(first) {
  check<ConfigError>(depth > 0, "prefetch must be positive");
  for (size_t i = 0; i < producers.size(); ++i) {
    Lane& lane = *lanes_.emplace_back(std::make_unique<Lane>());
    for (size_t k = 0; k < depth; ++k) lane.spare.push_back(std::make_unique<Batch>());
  }
  for (size_t i = 0; i < producers.size(); ++i)
    threads_.emplace_back("reader",
                          [this, lane = lanes_[i].get(), produce = std::move(producers[i])](
                              const std::stop_token& stop) { run(*lane, produce, stop); });
}

Prefetch::~Prefetch() {
  for (Thread& thread : threads_) thread.request_stop();
}

void Prefetch::run(Lane& lane, const Produce& produce, const std::stop_token& stop) {
  std::exception_ptr failure;
  try {
    while (std::unique_ptr<Batch> batch = spare_of(lane, stop)) {
      if (!produce(*batch, stop)) break;
      const Lock lock(mutex_);
      lane.ready.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const Lock lock(mutex_);
  lane.failure = failure;
  lane.ended = true;
  changed_.notify_all();
}

/// A batch to fill; null: no more are wanted.
std::unique_ptr<Batch> Prefetch::spare_of(Lane& lane, const std::stop_token& stop) {
  const Lock lock(mutex_);
  if (!changed_.wait(mutex_, stop, [&] { return !lane.spare.empty(); })) return nullptr;
  std::unique_ptr<Batch> batch = std::move(lane.spare.back());
  lane.spare.pop_back();
  return batch;
}

bool Prefetch::next(Batch& out) {
  const Lock lock(mutex_);
  Lane* const lane = next_lane();
  if (lane == nullptr) return false;
  ++turn_;
  std::unique_ptr<Batch> batch = std::move(lane->ready.front());
  lane->ready.erase(lane->ready.begin());
  {
    const Unlocked open(mutex_);
    out.swap_content(*batch);
  }
  lane->spare.push_back(std::move(batch));
  changed_.notify_all();
  return true;
}

/// The one that has the next batch, once it is ready; null at the end.
Prefetch::Lane* Prefetch::next_lane() {
  const auto exhausted = [](const auto& lane) {
    return lane->ended && lane->ready.empty() && !lane->failure;
  };
  while (!std::ranges::all_of(lanes_, exhausted)) {
    Lane* lane = nullptr;
    // The turn may move on during the wait: another consumer may take the batch.
    changed_.wait(mutex_, [&]() REQUIRES(mutex_) {
      lane = lanes_[turn_ % lanes_.size()].get();
      return !lane->ready.empty() || lane->ended;
    });
    if (!lane->ready.empty()) return lane;
    if (lane->failure) std::rethrow_exception(lane->failure);
    ++turn_;
  }
  return nullptr;
}

}  // namespace argosy

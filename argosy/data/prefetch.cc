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
    threads_.emplace_back([this, lane = lanes_[i].get(), produce = std::move(producers[i])](
                              const std::stop_token& stop) { run(*lane, produce, stop); });
}

Prefetch::~Prefetch() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void Prefetch::run(Lane& lane, const Produce& produce, const std::stop_token& stop) {
  std::exception_ptr failure;
  try {
    while (true) {
      std::unique_ptr<Batch> batch;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return !lane.spare.empty(); })) return;
        batch = std::move(lane.spare.back());
        lane.spare.pop_back();
      }
      if (!produce(*batch, stop)) break;
      const std::scoped_lock lock(mutex_);
      lane.ready.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  lane.failure = failure;
  lane.ended = true;
  changed_.notify_all();
}

bool Prefetch::next(Batch& out) {
  std::unique_lock lock(mutex_);
  const auto exhausted = [](const auto& lane) {
    return lane->ended && lane->ready.empty() && !lane->failure;
  };
  while (!std::ranges::all_of(lanes_, exhausted)) {
    Lane* lane = nullptr;
    // Whose turn it is may change while this waits: another consumer may take the batch.
    changed_.wait(lock, [&] {
      lane = lanes_[turn_ % lanes_.size()].get();
      return !lane->ready.empty() || lane->ended;
    });
    if (lane->ready.empty()) {
      if (lane->failure) std::rethrow_exception(lane->failure);
      ++turn_;
      continue;
    }
    ++turn_;
    std::unique_ptr<Batch> batch = std::move(lane->ready.front());
    lane->ready.erase(lane->ready.begin());
    lock.unlock();
    out.swap_content(*batch);
    lock.lock();
    lane->spare.push_back(std::move(batch));
    changed_.notify_all();
    return true;
  }
  return false;
}

}  // namespace argosy

#include "argosy/ps/lanes.h"

#include <utility>

#include "argosy/base/denormals.h"

namespace argosy::ps {

Lanes* LanesHandle::acquire() {
  const Lock lock(mutex_);
  if (lanes_ != nullptr) ++users_;
  return lanes_;
}

void LanesHandle::release() {
  const Lock lock(mutex_);
  --users_;
  changed_.notify_one();  // under the lock: close() may return as soon as that is free
}

void LanesHandle::close() {
  const Lock lock(mutex_);
  lanes_ = nullptr;
  while (users_ > 0) changed_.wait(mutex_);
}

void Resume::operator()() const {
  Lanes* const lanes = handle->acquire();
  if (lanes == nullptr) return;
  lanes->resume(part, lane);
  handle->release();
}

Lanes::Lanes(size_t parts, Threads threads)
    : mode_(threads), parts_(parts), handle_(std::make_shared<LanesHandle>(*this)) {
  if (threads == Threads::none) return;
  for (size_t part = 0; part < parts; ++part)
    threads_.emplace_back([this, part](const std::stop_token& stop) { run(part, stop); });
}

Lanes::~Lanes() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  handle_->close();
}

void Lanes::post(uint32_t number, std::shared_ptr<PartedWork> work, Size size) {
  const auto left = std::make_shared<std::atomic<size_t>>(parts_.size());
  for (size_t part = 0; part < parts_.size(); ++part) {
    Part& own = parts_[part];
    bool idle = false;
    {
      const Lock lock(own.mutex);
      Lane& lane = own.lanes[number];
      lane.jobs.push_back({work, left});
      if (!std::exchange(lane.active, true)) own.ready.push_back(number);
      idle = !own.busy && own.ready.size() == 1;
    }
    if (mode_ == Threads::none || (size == Size::small && idle))
      help(part);
    else
      own.changed.notify_one();
  }
}

/// A thread's life.
void Lanes::run(size_t part, const std::stop_token& stop) {
  const FlushDenormals flush;
  Part& own = parts_[part];
  for (;;) {
    {
      const Lock lock(own.mutex);
      const auto has_work = [&]() REQUIRES(own.mutex) { return !own.ready.empty() && !own.busy; };
      if (!own.changed.wait(own.mutex, stop, has_work)) return;
      own.busy = true;
    }
    advance_next(part);
  }
}

/// Does what is ready, unless somebody is at it, who will go on with it.
void Lanes::help(size_t part) {
  const FlushDenormals flush;
  Part& own = parts_[part];
  for (;;) {
    {
      const Lock lock(own.mutex);
      if (own.busy || own.ready.empty()) return;
      own.busy = true;
    }
    advance_next(part);
    if (mode_ == Threads::one_per_part) break;  // the rest is the thread's
  }
  own.changed.notify_one();
}

/// The caller has marked the part as busy.
void Lanes::advance_next(size_t part) {
  Part& own = parts_[part];
  uint32_t number = 0;
  Job job;
  {
    const Lock lock(own.mutex);
    number = own.ready.front();
    own.ready.pop_front();
    job = own.lanes[number].jobs.front();
  }
  const bool done = job.work->advance(part, {handle_, part, number});
  if (done && --*job.parts_left == 0) job.work->finish();
  const Lock lock(own.mutex);
  own.busy = false;
  if (!done) return;  // resume() makes its lane ready
  Lane& lane = own.lanes[number];
  lane.jobs.pop_front();
  lane.active = !lane.jobs.empty();
  if (lane.active) own.ready.push_back(number);
}

void Lanes::resume(size_t part, uint32_t lane) {
  Part& own = parts_[part];
  {
    const Lock lock(own.mutex);
    own.ready.push_back(lane);
  }
  if (mode_ == Threads::none)
    help(part);
  else
    own.changed.notify_one();
}

}  // namespace argosy::ps

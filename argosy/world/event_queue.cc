#include "argosy/world/event_queue.h"

#include <algorithm>

namespace argosy {

uint64_t EventQueue::at(Env::Time time, Owner whose, std::function<void()> task) {
  const uint64_t number = ++last_event_;
  queue_.emplace(When{time, number}, Event{whose, std::move(task)});
  times_.emplace(number, time);
  return number;
}

bool EventQueue::cancel(uint64_t event) {
  const auto found = times_.find(event);
  if (found == times_.end()) return false;
  auto queued = queue_.extract({found->second, event});
  times_.erase(found);
  bury(std::make_shared<Event>(std::move(queued.mapped())));
  return true;
}

void EventQueue::drop(Owner whose) {
  const auto dropped = std::make_shared<std::vector<Event>>();
  for (auto it = queue_.begin(); it != queue_.end();) {
    if (it->second.whose != whose) {
      ++it;
      continue;
    }
    dropped->push_back(std::move(it->second));
    times_.erase(it->first.second);
    it = queue_.erase(it);
  }
  bury(dropped);
}

void EventQueue::clear() {
  times_.clear();
  // One by one: what an event holds may cancel others when it goes.
  while (!queue_.empty()) queue_.extract(queue_.begin());
}

std::optional<Env::Time> EventQueue::next() const {
  if (queue_.empty()) return std::nullopt;
  return queue_.begin()->first.first;
}

void EventQueue::advance(Env::Time to) { now_ = std::max(now_, to); }

void EventQueue::run_next() {
  const auto next = queue_.begin();
  advance(next->first.first);
  const Event event = std::move(next->second);
  times_.erase(next->first.second);
  queue_.erase(next);
  running_ = true;
  running_for_ = event.whose;
  try {
    event.task();
  } catch (...) {
    running_ = false;
    throw;
  }
  running_ = false;
  dead_.clear();
}

void EventQueue::bury(std::shared_ptr<const void> dead) {
  if (running_) dead_.push_back(std::move(dead));
}

}  // namespace argosy

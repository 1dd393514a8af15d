// async: no worker waits for another. A batch's gradients are pushed with the pull of the batch
// after the next, so the reply has arrived by the time it is needed.
#include <algorithm>
#include <deque>

#include "argosy/base/mutex.h"
#include "argosy/modes/merged.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/remote.h"

namespace argosy::communicators {
namespace {

class Async final : public Remote {
 public:
  Async(const Plan& plan, const Strategy& strategy, const Wires& wires)
      : Remote(2, plan, strategy, wires) {}

  void drain() override {
    std::deque<std::shared_ptr<Arrival>> under_way;
    {
      const Lock lock(mutex_);
      if (merged_.batches() > 0) {
        const auto exchange = std::make_shared<ps::Exchange>();
        merged_.put_into(*exchange);
        send(exchange, nullptr);
        merged_.clear();
      }
      under_way.swap(under_way_);
    }
    for (const auto& arrival : under_way) arrival->wait();
  }

  void pass(Pass event) override {
    if (event == Pass::begin) {
      const Lock lock(mutex_);
      prepared_.clear();  // of a pass that was ended early
    }
    if (event == Pass::end) secure();
    Remote::pass(event);
  }

 protected:
  void prepared(Flight& own) override {
    const Lock lock(mutex_);
    prepared_.push_back(&own);
  }

  std::shared_ptr<Arrival> arrival_of(Flight& own) override {
    const Lock lock(mutex_);
    // Pulls run ahead of the commits that take them along: at the beginning of a pass there are
    // none, and each thread leaves one for its next commit.
    const auto threads = static_cast<size_t>(strategy().threads);
    while (!prepared_.empty() && (own.arrival == nullptr || prepared_.size() > threads)) {
      Flight& next = *prepared_.front();
      prepared_.pop_front();
      next.arrival = begin(client(), next.exchange);
    }
    return Remote::arrival_of(own);
  }

  void push(Flight& own, Batch& batch) override {
    std::shared_ptr<Arrival> oldest;  // waited for when others may send again
    {
      const Lock lock(mutex_);
      finish_gradients(batch);
      Flight* next = nullptr;
      if (!prepared_.empty()) {
        next = prepared_.front();
        prepared_.pop_front();
      }
      const auto exchange = next != nullptr ? next->exchange : std::make_shared<ps::Exchange>();
      if (strategy().max_merge == 1) {
        add_push(*exchange, own, batch);
        send(exchange, next);
      } else {
        send_merged(exchange, next, own, batch);
      }
      if (under_way_.size() > static_cast<size_t>(strategy().send_queue)) {
        oldest = std::move(under_way_.front());
        under_way_.pop_front();
      }
    }
    if (oldest != nullptr) oldest->wait();
  }

 private:
  void send_merged(const std::shared_ptr<ps::Exchange>& exchange, Flight* next, const Flight& own,
                   const Batch& batch) REQUIRES(mutex_) {
    ps::Exchange one;
    add_push(one, own, batch);
    merged_.add(one);
    const bool full = merged_.batches() == strategy().max_merge;
    if (full) merged_.put_into(*exchange);
    if (full || next != nullptr) send(exchange, next);
    if (full) merged_.clear();
  }

  /// `next`: the batch whose pull the exchange carries, if any.
  void send(const std::shared_ptr<ps::Exchange>& exchange, Flight* next) REQUIRES(mutex_) {
    exchange->ends_step = !exchange->dense.empty() || !exchange->pushes.empty();
    under_way_.push_back(begin(client(), exchange));
    if (next != nullptr) next->arrival = under_way_.back();
  }

  Mutex mutex_;                                      // not held while waiting for a server
  std::deque<Flight*> prepared_ GUARDED_BY(mutex_);  // their pulls are not sent yet
  Merged merged_ GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Arrival>> under_way_ GUARDED_BY(mutex_);
};

std::unique_ptr<Communicator> make(const Plan& plan, const Strategy& strategy, const Wires& wires) {
  check<ConfigError>(strategy.max_merge > 0, "max_merge_var_num must be positive, got ",
                     strategy.max_merge);
  check<ConfigError>(strategy.send_queue > 0, "send_queue_size must be positive, got ",
                     strategy.send_queue);
  return std::make_unique<Async>(plan, strategy, wires);
}

}  // namespace

Mode async() {
  return {.make = make,
          .links = kSendInBackground,
          .batches_per_push = [](const Strategy& s) -> int64_t { return s.max_merge; }};
}

}  // namespace argosy::communicators

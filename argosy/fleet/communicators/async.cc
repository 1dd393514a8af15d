// async: nobody waits for anybody. The gradients of a batch go out with the pull of the batch after
// the next, so that the answer is there when it is needed.
#include <algorithm>
#include <deque>

#include "argosy/fleet/merged.h"
#include "argosy/fleet/remote.h"

namespace argosy::communicators {
namespace {

class Async final : public Remote {
 public:
  Async(const Plan& plan, const Strategy& strategy, const Wires& wires)
      : Remote(2, plan, strategy, wires) {}

  void prepare(Batch& batch) override {
    Flight& own = flight(batch);
    own.exchange = pull_of(batch, Purpose::training);
    own.lists = own.exchange->lists;
    own.arrival = nullptr;
    const std::scoped_lock lock(mutex_);
    prepared_.push_back(&batch);
  }

  void commit(Batch& batch) override {
    {
      const std::scoped_lock lock(mutex_);
      finish_gradients(batch);
      Batch* next = nullptr;
      if (!prepared_.empty()) {
        next = prepared_.front();
        prepared_.pop_front();
      }
      const auto exchange = next != nullptr ? flight(*next).exchange : std::make_shared<Exchange>();
      if (strategy().max_merge == 1) {
        add_push(*exchange, batch);
        send(exchange, next);
      } else {
        send_merged(exchange, next, batch);
      }
    }
    flight(batch).exchange = nullptr;
    states().commit(batch);
  }

  void drain() override {
    std::deque<std::shared_ptr<Arrival>> under_way;
    {
      const std::scoped_lock lock(mutex_);
      if (merged_.batches() > 0) {
        const auto exchange = std::make_shared<Exchange>();
        merged_.put_into(*exchange);
        send(exchange, nullptr);
        merged_.clear();
      }
      under_way.swap(under_way_);
    }
    for (const auto& arrival : under_way) arrival->wait();
  }

 protected:
  std::shared_ptr<Arrival> arrival_of(Batch& batch) override {
    const std::scoped_lock lock(mutex_);
    // Pulls run ahead of the commits that take them along: at the beginning of a pass there are
    // none, and each thread leaves one for its next commit.
    while (flight(batch).arrival == nullptr ||
           prepared_.size() > static_cast<size_t>(strategy().threads)) {
      Batch* const next = prepared_.front();
      prepared_.pop_front();
      flight(*next).arrival = begin(client(), flight(*next).exchange);
    }
    return flight(batch).arrival;
  }

 private:
  void send_merged(const std::shared_ptr<Exchange>& exchange, Batch* next, Batch& batch) {
    Exchange one;
    add_push(one, batch);
    merged_.add(one);
    const bool full = merged_.batches() == strategy().max_merge;
    if (full) merged_.put_into(*exchange);
    if (full || next != nullptr) send(exchange, next);
    if (full) merged_.clear();
  }

  /// `next`: the batch whose values the exchange brings, if any.
  void send(const std::shared_ptr<Exchange>& exchange, Batch* next) {
    exchange->ends_step = !exchange->dense.empty() || !exchange->pushes.empty();
    const auto arrival = begin(client(), exchange);
    if (next != nullptr) flight(*next).arrival = arrival;
    under_way_.push_back(arrival);
    if (under_way_.size() <= static_cast<size_t>(strategy().send_queue)) return;
    under_way_.front()->wait();
    under_way_.pop_front();
  }

  std::mutex mutex_;
  std::deque<Batch*> prepared_;  // whose pulls have not been sent
  Merged merged_;
  std::deque<std::shared_ptr<Arrival>> under_way_;
};

}  // namespace

std::unique_ptr<Communicator> async(const Plan& plan, const Strategy& strategy,
                                    const Wires& wires) {
  check<ConfigError>(strategy.max_merge > 0, "max_merge_var_num must be positive, got ",
                     strategy.max_merge);
  check<ConfigError>(strategy.send_queue > 0, "send_queue_size must be positive, got ",
                     strategy.send_queue);
  return std::make_unique<Async>(plan, strategy, wires);
}

}  // namespace argosy::communicators

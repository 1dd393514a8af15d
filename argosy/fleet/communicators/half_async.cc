// half_async: the threads of one worker end each step together, workers do not wait for each other.
// The gradients of all threads are added up and pushed, and nobody goes on before they are applied.
#include <condition_variable>

#include "argosy/base/error.h"
#include "argosy/fleet/merged.h"
#include "argosy/fleet/remote.h"

namespace argosy::communicators {
namespace {

class HalfAsync final : public Remote {
 public:
  HalfAsync(const Plan& plan, const Strategy& strategy, const Wires& wires)
      : Remote(0, plan, strategy, wires) {}

  void prepare(Batch& batch) override {
    Flight& own = flight(batch);
    own.exchange = pull_of(batch, Purpose::training);
    own.lists = own.exchange->lists;
    own.arrival = nullptr;
  }

  void commit(Batch& batch) override {
    {
      std::unique_lock lock(mutex_);
      finish_gradients(batch);
      Exchange one;
      add_push(one, batch);
      merged_.add(one);
      const uint64_t round = round_;
      if (merged_.batches() == active_)
        complete_round();
      else
        changed_.wait(lock, [&] { return round_ != round; });
      if (failure_ != nullptr) std::rethrow_exception(failure_);
    }
    flight(batch).exchange = nullptr;
    states().commit(batch);
  }

  void drain() override {}  // every commit waits for its answer

  void pass(Pass event) override {
    if (event == Pass::begin) {
      const std::scoped_lock lock(mutex_);
      active_ = strategy().threads;
    }
    if (event == Pass::thread_done) {
      const std::scoped_lock lock(mutex_);
      --active_;
      if (merged_.batches() > 0 && merged_.batches() == active_) complete_round();
    }
    Remote::pass(event);
  }

 private:
  /// With the lock held: the others wait for this round anyway.
  void complete_round() {
    const auto exchange = std::make_shared<Exchange>();
    merged_.put_into(*exchange);
    exchange->ends_step = true;
    const auto arrival = begin(client(), exchange);
    merged_.clear();
    try {
      arrival->wait();
      note(*exchange);
    } catch (...) {
      failure_ = std::current_exception();
    }
    ++round_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Merged merged_;
  int active_ = 1;  // threads that still compute
  uint64_t round_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

std::unique_ptr<Communicator> half_async(const Plan& plan, const Strategy& strategy,
                                         const Wires& wires) {
  return std::make_unique<HalfAsync>(plan, strategy, wires);
}

}  // namespace argosy::communicators

// half_async: the threads of a worker end each step together; workers do not wait for each other.
// All threads' gradients are summed and pushed, and no thread continues before they are applied.
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/modes/merged.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/remote.h"

namespace argosy::communicators {
namespace {

class HalfAsync final : public Remote {
 public:
  HalfAsync(const Plan& plan, const Strategy& strategy, const Wires& wires)
      : Remote(0, plan, strategy, wires) {}

  void drain() override {}  // every commit waits for its answer

  void pass(Pass event) override {
    if (event == Pass::begin) {
      const Lock lock(mutex_);
      active_ = strategy().threads;
    }
    if (event == Pass::thread_done) {
      const Lock lock(mutex_);
      --active_;
      if (merged_.batches() > 0 && merged_.batches() == active_) complete_round();
    }
    if (event == Pass::end) secure();
    Remote::pass(event);
  }

 protected:
  void push(Flight& own, Batch& batch) override {
    const Lock lock(mutex_);
    finish_gradients(batch);
    ps::Exchange one;
    add_push(one, own, batch);
    merged_.add(one);
    const uint64_t round = round_;
    if (merged_.batches() == active_)
      complete_round();
    else
      changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return round_ != round; });
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  /// The other threads wait for this round; the lock is given up while the servers work.
  void complete_round() REQUIRES(mutex_) {
    const Merged all = std::exchange(merged_, {});
    std::exception_ptr failure;
    {
      const Unlocked unlocked(mutex_);
      failure = failure_of(all);
    }
    if (failure != nullptr) failure_ = failure;
    ++round_;
    changed_.notify_all();
  }

  /// Pushes it and waits for the servers; null if all went well.
  std::exception_ptr failure_of(const Merged& all) try {
    const auto exchange = std::make_shared<ps::Exchange>();
    all.put_into(*exchange);
    exchange->ends_step = true;
    begin(client(), exchange)->wait();
    note(*exchange);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }

  Mutex mutex_;
  CondVar changed_;
  Merged merged_ GUARDED_BY(mutex_);
  int active_ GUARDED_BY(mutex_) = 1;  // threads that still compute
  uint64_t round_ GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ GUARDED_BY(mutex_);
};

std::unique_ptr<Communicator> make(const Plan& plan, const Strategy& strategy, const Wires& wires) {
  return std::make_unique<HalfAsync>(plan, strategy, wires);
}

}  // namespace

Mode half_async() {
  return {.make = make,
          .exchanges = 2,  // nothing is pulled with a push
          .batches_per_push = [](const Strategy& s) -> int64_t { return s.threads; }};
}

}  // namespace argosy::communicators

// sync: all workers end a step together. The gradients of a batch go out with the pull of the next
// one, and the answer, held until every worker has ended the step, is the barrier.
#include "argosy/modes/mode.h"
#include "argosy/modes/remote.h"

namespace argosy::communicators {
namespace {

class Sync final : public Remote {
 public:
  Sync(const Plan& plan, const Strategy& strategy, const Wires& wires)
      : Remote(1, plan, strategy, wires) {}

  void drain() override {
    if (last_ != nullptr) std::exchange(last_, nullptr)->wait();
  }

  void pass(Pass event) override {
    // Every worker rejoins the step group before any worker ends a step.
    if (event == Pass::begin) {
      next_ = nullptr;
      call_all(client(), ps::verbs::Join{next_pass()});
    }
    if (event == Pass::end) {
      drain();
      call_all(client(), ps::verbs::Pause{this_pass()});
    }
    Remote::pass(event);
  }

 protected:
  void prepared(Flight& own) override { next_ = &own; }

  /// A separate pull would overtake a push that the servers hold.
  std::shared_ptr<Arrival> arrival_of(Flight& own) override {
    if (own.arrival == nullptr) drain();
    return Remote::arrival_of(own);
  }

  void push(Flight& own, Batch& batch) override {
    finish_gradients(batch);
    // Fuse the push with the pull of the next prepared batch, if there is one.
    Flight* const next =
        next_ == &own || next_ == nullptr || next_->arrival != nullptr ? nullptr : next_;
    const auto exchange = next != nullptr ? next->exchange : std::make_shared<ps::Exchange>();
    add_push(*exchange, own, batch);
    exchange->ends_step = true;
    last_ = begin(client(), exchange);
    if (next != nullptr) next->arrival = last_;
  }

 private:
  Flight* next_ = nullptr;  // the last one that was prepared
  std::shared_ptr<Arrival> last_;
};

std::unique_ptr<Communicator> make(const Plan& plan, const Strategy& strategy, const Wires& wires) {
  return std::make_unique<Sync>(plan, strategy, wires);
}

}  // namespace

Mode sync() { return {.threads_share_a_batch = true, .make = make, .sync = true}; }

}  // namespace argosy::communicators

// sync: all workers end a step together. The gradients of a batch go out with the pull of the next
// one, and the answer, held until every worker has ended the step, is the barrier.
#include <fmt/format.h>

#include "argosy/fleet/remote.h"

namespace argosy::communicators {
namespace {

class Sync final : public Remote {
 public:
  Sync(const Plan& plan, const Strategy& strategy, const Wires& wires)
      : Remote(1, plan, strategy, wires) {}

  void prepare(Batch& batch) override {
    Flight& own = flight(batch);
    own.exchange = pull_of(batch, Purpose::training);
    own.lists = own.exchange->lists;
    own.arrival = nullptr;
    next_ = &batch;
  }

  void commit(Batch& batch) override {
    finish_gradients(batch);
    // Fused with the pull of the batch that has been prepared behind this one, if there is one.
    Batch* const next = next_ == &batch ? nullptr : next_;
    const auto exchange = next != nullptr && flight(*next).arrival == nullptr
                              ? flight(*next).exchange
                              : std::make_shared<Exchange>();
    add_push(*exchange, batch);
    exchange->ends_step = true;
    last_ = begin(client(), exchange);
    if (next != nullptr && flight(*next).exchange == exchange) flight(*next).arrival = last_;
    flight(batch).exchange = nullptr;
    states().commit(batch);
  }

  void drain() override {
    if (last_ != nullptr) std::exchange(last_, nullptr)->wait();
  }

  void pass(Pass event) override {
    // Everybody is back in the step group before anybody ends a step.
    if (event == Pass::begin) call_all(client(), {Control{fmt::format("join {}", next_pass())}});
    if (event == Pass::end) {
      drain();
      call_all(client(), {Control{"pause"}});
    }
    Remote::pass(event);
  }

 protected:
  /// A pull of its own would overtake a push that the servers hold.
  std::shared_ptr<Arrival> arrival_of(Batch& batch) override {
    if (flight(batch).arrival == nullptr) drain();
    return Remote::arrival_of(batch);
  }

 private:
  Batch* next_ = nullptr;  // the last one that was prepared
  std::shared_ptr<Arrival> last_;
};

}  // namespace

std::unique_ptr<Communicator> sync(const Plan& plan, const Strategy& strategy, const Wires& wires) {
  check<ConfigError>(strategy.threads == 1,
                     "sync: the threads of a worker share one batch; give chunks");
  return std::make_unique<Sync>(plan, strategy, wires);
}

}  // namespace argosy::communicators

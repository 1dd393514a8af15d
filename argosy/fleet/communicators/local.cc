// local: the tables live in this process and are updated in place.
#include <algorithm>

#include "argosy/base/denormals.h"
#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/fleet/clip.h"
#include "argosy/fleet/in_process.h"

namespace argosy::communicators {
namespace {

/// The gradients of several batches, each taken with an equal share, as a server does in sync
/// mode: in the order in which they came.
class Accumulated {
 public:
  Accumulated(const Plan& plan, int batches)
      : plan_(plan), share_(1.0F / static_cast<float>(batches)), sums_(plan.tables.size()) {}

  struct Sum {
    std::vector<Key> keys;  // of a sparse table; a key may come more than once
    std::vector<float> grads;
  };

  void add(const Batch& batch) {
    for (size_t table = 0; table < sums_.size(); ++table) {
      Sum& sum = sums_[table];
      const std::span<const float> grad = batch.grads[table];
      if (plan_.tables[table].elements > 0 && batches_ > 0) {
        for (size_t i = 0; i < grad.size(); ++i) sum.grads[i] += grad[i] * share_;
        continue;
      }
      for (const float value : grad) sum.grads.push_back(value * share_);
      if (plan_.tables[table].elements > 0) continue;
      const std::vector<Key>& keys = batch.keys[plan_.key_sets[table]];
      sum.keys.insert(sum.keys.end(), keys.begin(), keys.end());
    }
    ++batches_;
  }
  int batches() const { return batches_; }
  const Sum& sum(size_t table) const { return sums_[table]; }
  void clear() {
    for (Sum& sum : sums_) {
      sum.keys.clear();
      sum.grads.clear();
    }
    batches_ = 0;
  }

 private:
  const Plan& plan_;
  const float share_;
  std::vector<Sum> sums_;  // by table
  int batches_ = 0;
};

class Local final : public InProcess {
 public:
  Local(const Plan& plan, const Strategy& strategy)
      : InProcess(plan), accumulate_(strategy.accumulate), accumulated_(plan, accumulate_) {
    check<ConfigError>(accumulate_ > 0, "accumulate must be positive, got ", accumulate_);
    set_threads(strategy.threads);
  }

  void set_threads(int threads) override {
    check<ConfigError>(accumulate_ == 1 || threads == 1,
                       "gradients of several batches are added up on one thread, got ", threads);
    set_shared(threads > 1);
  }

  void deliver(Batch& batch, const Edge& edge, const Tensor& value) override {
    if (edge.kind == VarKind::state)
      WorkerStates::deliver(batch, edge, value);
    else
      batch.grads[edge.target] = value.as<float>();
  }

  void commit(Batch& batch) override {
    const FlushDenormals flush;
    for (size_t i = 0; i < plan().tables.size(); ++i)
      check<Error>(batch.grads[i].data() != nullptr || batch.size == 0,
                   "no gradient was delivered for '", plan().tables[i].name, "'");
    if (!plan().clip.empty()) {
      const Lock lock(clip_mutex_);
      clip_.apply(batch.grads);
      apply(batch);
    } else {
      apply(batch);
    }
    states().commit(batch);
  }

  void pass(Pass) override {}

 private:
  void apply(const Batch& batch) {
    if (accumulate_ > 1) return accumulate(batch);
    const uint64_t step = ++tables().step;
    for (size_t i = 0; i < plan().tables.size(); ++i) {
      if (tables().dense(i) != nullptr)
        tables().dense(i)->push_all(batch.grads[i], step);
      else
        tables().sparse(i)->push(found_rows(batch)[i], batch.grads[i], step);
    }
  }

  void accumulate(const Batch& batch) {
    accumulated_.add(batch);
    if (accumulated_.batches() < accumulate_) return;
    const uint64_t step = ++tables().step;
    for (size_t i = 0; i < plan().tables.size(); ++i) {
      const Accumulated::Sum& sum = accumulated_.sum(i);
      if (tables().dense(i) != nullptr)
        tables().dense(i)->push_all(sum.grads, step);
      else
        tables().sparse(i)->push(sum.keys, sum.grads, step);
    }
    accumulated_.clear();
  }

  const int accumulate_;
  Accumulated accumulated_;
  Mutex clip_mutex_;
  NormClip clip_{plan().clip};
};

}  // namespace

std::unique_ptr<Communicator> local(const Plan& plan, const Strategy& strategy, const Wires&) {
  return std::make_unique<Local>(plan, strategy);
}

}  // namespace argosy::communicators

// local: the tables live in this process and are updated in place. One thread computes on the
// parameters themselves; of several, each takes a copy, as others may update them meanwhile.
#include <algorithm>

#include "argosy/base/denormals.h"
#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/fleet/clip.h"
#include "argosy/fleet/communicator.h"
#include "argosy/fleet/local_store.h"

namespace argosy::communicators {
namespace {

/// By table: where the rows of the batch's keys are, so that commit need not search again.
struct FoundRows final : Carried {
  std::vector<SparseTable::Located> tables;
};

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

class Local final : public Communicator {
 public:
  Local(const Plan& plan, const Strategy& strategy)
      : Communicator(0),
        plan_(plan),
        accumulate_(strategy.accumulate),
        states_(plan),
        store_(plan, states_),
        accumulated_(plan, accumulate_) {
    check<ConfigError>(accumulate_ > 0, "accumulate must be positive, got ", accumulate_);
    set_threads(strategy.threads);
  }

  void set_threads(int threads) override {
    check<ConfigError>(accumulate_ == 1 || threads == 1,
                       "gradients of several batches are added up on one thread, got ", threads);
    shared_ = threads > 1;
    states_.set_shared(shared_);
  }

  void prepare(Batch&) override {}

  void fetch(Batch& batch, Purpose purpose) override {
    batch.grads.assign(plan_.tables.size(), {});
    if (batch.carried == nullptr) {
      batch.carried = std::make_unique<FoundRows>();
      found_rows(batch).tables.resize(plan_.tables.size());
    }
    for (size_t i = 0; i < plan_.tables.size(); ++i) {
      Tensor& feed = batch.feeds[plan_.tables[i].name];
      if (store_.sparse(i) != nullptr)
        fetch_rows(batch, i, purpose, feed);
      else if (!shared_)
        feed = store_.parameter(i);
      else
        fetch_copy(i, feed);
    }
    states_.fetch(batch);
  }

  void deliver(Batch& batch, const Edge& edge, const Tensor& value) override {
    if (edge.kind == VarKind::state)
      WorkerStates::deliver(batch, edge, value);
    else
      batch.grads[edge.target] = value.as<float>();
  }

  void commit(Batch& batch) override {
    const FlushDenormals flush;
    for (size_t i = 0; i < plan_.tables.size(); ++i)
      check<Error>(batch.grads[i].data() != nullptr || batch.size == 0,
                   "no gradient was delivered for '", plan_.tables[i].name, "'");
    if (!plan_.clip.empty()) {
      const Lock lock(clip_mutex_);
      clip_.apply(batch.grads);
      apply(batch);
    } else {
      apply(batch);
    }
    states_.commit(batch);
  }

  void drain() override {}
  void pass(Pass) override {}
  TableStore& store() override { return store_; }
  std::vector<std::string> notes() override { return {}; }

 private:
  void fetch_rows(const Batch& batch, size_t table, Purpose purpose, Tensor& feed) {
    const std::vector<Key>& keys = batch.keys[plan_.key_sets[table]];
    feed.renew({static_cast<int64_t>(keys.size()), static_cast<int64_t>(plan_.tables[table].dim)},
               DType::f32);
    if (purpose == Purpose::inference)
      store_.sparse(table)->pull_existing(keys, feed.as<float>());
    else
      store_.sparse(table)->pull(keys, feed.as<float>(), {}, found_rows(batch).tables[table]);
  }

  static FoundRows& found_rows(const Batch& batch) {
    return static_cast<FoundRows&>(*batch.carried);
  }

  void fetch_copy(size_t table, Tensor& feed) {
    feed.renew(store_.parameter(table).shape(), DType::f32);
    store_.dense(table)->pull_all(feed.as<float>());
  }

  void apply(const Batch& batch) {
    if (accumulate_ > 1) return accumulate(batch);
    const uint64_t step = ++store_.step;
    for (size_t i = 0; i < plan_.tables.size(); ++i) {
      if (store_.dense(i) != nullptr)
        store_.dense(i)->push_all(batch.grads[i], step);
      else
        store_.sparse(i)->push(found_rows(batch).tables[i], batch.grads[i], step);
    }
  }

  void accumulate(const Batch& batch) {
    accumulated_.add(batch);
    if (accumulated_.batches() < accumulate_) return;
    const uint64_t step = ++store_.step;
    for (size_t i = 0; i < plan_.tables.size(); ++i) {
      const Accumulated::Sum& sum = accumulated_.sum(i);
      if (store_.dense(i) != nullptr)
        store_.dense(i)->push_all(sum.grads, step);
      else
        store_.sparse(i)->push(sum.keys, sum.grads, step);
    }
    accumulated_.clear();
  }

  const Plan& plan_;
  bool shared_ = false;  // by several threads
  const int accumulate_;
  WorkerStates states_;
  LocalStore store_;
  Accumulated accumulated_;
  Mutex clip_mutex_;
  NormClip clip_{plan_.clip};
};

}  // namespace

std::unique_ptr<Communicator> local(const Plan& plan, const Strategy& strategy, const Wires&) {
  return std::make_unique<Local>(plan, strategy);
}

}  // namespace argosy::communicators

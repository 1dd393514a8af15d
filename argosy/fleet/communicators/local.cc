// local: the tables live in this process and are updated in place. One thread computes on the
// parameters themselves; of several, each takes a copy, as others may update them meanwhile.
#include <algorithm>
#include <atomic>

#include "argosy/base/denormals.h"
#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/fleet/clip.h"
#include "argosy/fleet/communicator.h"
#include "argosy/ps/dense_table.h"
#include "argosy/ps/sparse_table.h"

namespace argosy::communicators {
namespace {

/// By table: where the rows of the batch's keys are, so that commit need not search again.
struct FoundRows final : Carried {
  std::vector<SparseTable::Located> tables;
};

class Local final : public Communicator {
 public:
  Local(const Plan& plan, const Strategy& strategy) : plan_(plan), shared_(strategy.threads > 1) {
    for (const TableSpec& spec : plan.tables) {
      tables_.push_back(make_table(spec));
      dense_.push_back(dynamic_cast<DenseTable*>(tables_.back().get()));
      sparse_.push_back(dynamic_cast<SparseTable*>(tables_.back().get()));
      if (dense_.back() == nullptr) {
        params_.emplace_back();
        continue;
      }
      const VarDesc& desc = plan.worker.var(plan.worker.find(spec.name));
      params_.push_back(Tensor::wrap(dense_.back()->weights().data(), desc.type.shape, DType::f32));
    }
    for (const VarDesc& desc : plan.states) {
      Tensor& state = states_.emplace_back(desc.type.shape, desc.type.dtype);
      const RandomStream stream =
          parameter_stream(plan.tables.empty() ? 0 : plan.tables[0].seed, desc.name);
      Initializer(desc.init).fill(state.as<float>(), stream);
    }
  }

  void fetch(Batch& batch, Purpose purpose) override {
    batch.grads.assign(tables_.size(), {});
    if (batch.carried == nullptr) {
      batch.carried = std::make_unique<FoundRows>();
      found_rows(batch).tables.resize(tables_.size());
    }
    batch.next_states.resize(states_.size());
    for (size_t i = 0; i < tables_.size(); ++i) {
      Tensor& feed = batch.feeds[plan_.tables[i].name];
      if (sparse_[i] != nullptr)
        fetch_rows(batch, i, purpose, feed);
      else if (!shared_)
        feed = params_[i];
      else
        fetch_copy(i, feed);
    }
    const Lock lock(states_mutex_);
    for (size_t i = 0; i < states_.size(); ++i) {
      Tensor& feed = batch.feeds[plan_.states[i].name];
      if (!shared_) {
        feed = states_[i];
        continue;
      }
      feed.renew(states_[i].shape(), states_[i].dtype());
      std::copy_n(states_[i].data(), states_[i].bytes(), feed.data());
    }
  }

  void deliver(Batch& batch, const Edge& edge, const Tensor& value) override {
    if (edge.kind == VarKind::state)
      batch.next_states[edge.target] = value;
    else
      batch.grads[edge.target] = value.as<float>();
  }

  void commit(Batch& batch) override {
    const FlushDenormals flush;
    const uint64_t step = ++step_;
    if (!plan_.clip.empty()) {
      const Lock lock(clip_mutex_);
      clip_.apply(batch.grads);
      push(batch, step);
    } else {
      push(batch, step);
    }
    const Lock lock(states_mutex_);
    for (size_t i = 0; i < states_.size(); ++i) {
      const Tensor& next = batch.next_states[i];
      if (next.numel() > 0) std::copy_n(next.data(), next.bytes(), states_[i].data());
      batch.next_states[i] = {};
    }
  }

  void drain() override {}

  std::vector<NamedTensor> persistables() override {
    std::vector<NamedTensor> all;
    for (size_t i = 0; i < tables_.size(); ++i)
      if (dense_[i] != nullptr) all.push_back({plan_.tables[i].name, params_[i]});
    for (size_t i = 0; i < states_.size(); ++i) all.push_back({plan_.states[i].name, states_[i]});
    for (size_t i = 0; i < tables_.size(); ++i) {
      if (dense_[i] == nullptr || dense_[i]->state().empty()) continue;
      const std::span<float> state = dense_[i]->state();
      all.push_back({plan_.tables[i].name + "@state",
                     Tensor::wrap(state.data(), {static_cast<int64_t>(state.size())}, DType::f32)});
    }
    static_assert(sizeof(step_) == sizeof(int64_t));
    all.push_back({"@step", Tensor::wrap(&step_, {1}, DType::i64)});
    return all;
  }

  std::vector<SparseTable*> sparse_tables() override {
    std::vector<SparseTable*> all;
    std::ranges::copy_if(sparse_, std::back_inserter(all), [](auto* t) { return t != nullptr; });
    return all;
  }

 private:
  void fetch_rows(const Batch& batch, size_t table, Purpose purpose, Tensor& feed) {
    const std::vector<Key>& keys = batch.keys[plan_.key_sets[table]];
    feed.renew({static_cast<int64_t>(keys.size()), static_cast<int64_t>(plan_.tables[table].dim)},
               DType::f32);
    if (purpose == Purpose::training)
      sparse_[table]->pull(keys, feed.as<float>(), {}, found_rows(batch).tables[table]);
    else
      sparse_[table]->pull_existing(keys, feed.as<float>());
  }

  static FoundRows& found_rows(const Batch& batch) {
    return static_cast<FoundRows&>(*batch.carried);
  }

  void fetch_copy(size_t table, Tensor& feed) {
    feed.renew(params_[table].shape(), DType::f32);
    dense_[table]->pull_all(feed.as<float>());
  }

  void push(const Batch& batch, uint64_t step) {
    for (size_t i = 0; i < tables_.size(); ++i) {
      check<Error>(batch.grads[i].data() != nullptr || batch.size == 0,
                   "no gradient was delivered for '", plan_.tables[i].name, "'");
      if (dense_[i] != nullptr)
        dense_[i]->push_all(batch.grads[i], step);
      else
        sparse_[i]->push(found_rows(batch).tables[i], batch.grads[i], step);
    }
  }

  const Plan& plan_;
  const bool shared_;  // by several threads
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<DenseTable*> dense_;    // by table, null where it is sparse
  std::vector<SparseTable*> sparse_;  // by table, null where it is dense
  std::vector<Tensor> params_;        // by table: over a dense one's memory
  Mutex states_mutex_;                // guards the content of states_
  std::vector<Tensor> states_;
  std::atomic<uint64_t> step_ = 0;
  Mutex clip_mutex_;
  NormClip clip_{plan_.clip};
};

}  // namespace

std::unique_ptr<Communicator> local(const Plan& plan, const Strategy& strategy) {
  return std::make_unique<Local>(plan, strategy);
}

}  // namespace argosy::communicators

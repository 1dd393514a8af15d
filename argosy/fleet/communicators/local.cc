// local: the tables live in this process and are updated in place, without a copy of anything.
#include <algorithm>

#include "argosy/base/denormals.h"
#include "argosy/base/error.h"
#include "argosy/fleet/clip.h"
#include "argosy/fleet/communicator.h"
#include "argosy/ps/dense_table.h"

namespace argosy::communicators {
namespace {

class Local final : public Communicator {
 public:
  explicit Local(const Plan& plan) : plan_(plan), clip_(plan.clip) {
    for (const TableSpec& spec : plan.tables) {
      tables_.push_back(std::make_unique<DenseTable>(spec));
      const VarDesc& desc = plan.worker.var(plan.worker.find(spec.name));
      params_.push_back(
          Tensor::wrap(tables_.back()->weights().data(), desc.type.shape, DType::f32));
    }
    for (const VarDesc& desc : plan.states) {
      Tensor& state =
          states_.emplace(desc.name, Tensor(desc.type.shape, desc.type.dtype)).first->second;
      const RandomStream stream =
          parameter_stream(plan.tables.empty() ? 0 : plan.tables[0].seed, desc.name);
      Initializer(desc.init).fill(state.as<float>(), stream);
    }
    grads_.resize(tables_.size());
  }

  void fetch(Batch& batch) override {
    for (size_t i = 0; i < params_.size(); ++i) batch.feeds[plan_.tables[i].name] = params_[i];
    for (const auto& [name, state] : states_) batch.feeds[name] = state;
  }

  void deliver(Batch&, const Edge& edge, const Tensor& value) override {
    if (edge.kind == VarKind::param) {
      grads_[edge.table] = value.as<float>();
    } else {
      next_states_.emplace_back(&states_.find(plan_.worker.var(edge.var).name)->second, value);
    }
  }

  void commit(Batch&) override {
    const FlushDenormals flush;
    ++step_;
    clip_.apply(grads_);
    for (size_t i = 0; i < tables_.size(); ++i) {
      check<Error>(grads_[i].data() != nullptr, "no gradient was delivered for '",
                   plan_.tables[i].name, "'");
      tables_[i]->push_all(grads_[i], step_);
      grads_[i] = {};
    }
    for (auto& [state, next] : next_states_) std::copy_n(next.data(), next.bytes(), state->data());
    next_states_.clear();
  }

  void drain() override {}

  std::vector<NamedTensor> persistables() override {
    std::vector<NamedTensor> all;
    for (size_t i = 0; i < tables_.size(); ++i) all.push_back({plan_.tables[i].name, params_[i]});
    for (auto& [name, state] : states_) all.push_back({name, state});
    for (size_t i = 0; i < tables_.size(); ++i) {
      const std::span<float> state = tables_[i]->state();
      if (state.empty()) continue;
      all.push_back({plan_.tables[i].name + "@state",
                     Tensor::wrap(state.data(), {static_cast<int64_t>(state.size())}, DType::f32)});
    }
    all.push_back({"@step", Tensor::wrap(&step_, {1}, DType::i64)});
    return all;
  }

 private:
  const Plan& plan_;
  NormClip clip_;
  std::vector<std::unique_ptr<DenseTable>> tables_;
  std::vector<Tensor> params_;  // over the tables' memory
  Feeds states_;
  uint64_t step_ = 0;
  std::vector<std::span<const float>> grads_;            // of the batch under way, by table
  std::vector<std::pair<Tensor*, Tensor>> next_states_;  // of the batch under way
};

}  // namespace

std::unique_ptr<Communicator> local(const Plan& plan, const Strategy&) {
  return std::make_unique<Local>(plan);
}

}  // namespace argosy::communicators

#include "argosy/modes/states.h"

#include <algorithm>

#include "argosy/ps/initializer.h"

namespace argosy {

WorkerStates::WorkerStates(const Plan& plan) : plan_(plan) {
  for (const VarDesc& desc : plan.states) {
    Tensor& state = states_.emplace_back(desc.type.shape, desc.type.dtype);
    const RandomStream stream = ps::parameter_stream(plan.seed, desc.name);
    ps::Initializer(desc.init).fill(state.as<float>(), stream);
  }
}

void WorkerStates::fetch(Batch& batch) {
  batch.next_states.resize(states_.size());
  const Lock lock(mutex_);
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

void WorkerStates::commit(Batch& batch) {
  const Lock lock(mutex_);
  for (size_t i = 0; i < states_.size(); ++i) {
    const Tensor& next = batch.next_states[i];
    if (next.numel() > 0) std::copy_n(next.data(), next.bytes(), states_[i].data());
    batch.next_states[i] = {};
  }
}

std::vector<NamedTensor> WorkerStates::copies() const {
  std::vector<NamedTensor> all = tensors();
  const Lock lock(mutex_);
  for (NamedTensor& state : all) state.value = state.value.clone();
  return all;
}

std::vector<NamedTensor> WorkerStates::tensors() const {
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < states_.size(); ++i) all.push_back({plan_.states[i].name, states_[i]});
  return all;
}

}  // namespace argosy

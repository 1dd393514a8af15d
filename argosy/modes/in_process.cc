#include "argosy/modes/in_process.h"

#include "argosy/modes/batch_gradients.h"
#include "argosy/modes/row_columns_of.h"

namespace argosy {

InProcess::InProcess(const Plan& plan, const ps::TableHome& home, int lookahead)
    : Communicator(lookahead), plan_(plan), states_(plan), store_(plan, states_, home) {}

std::unique_ptr<Lane> InProcess::make_lane() {
  return std::make_unique<LaneOf<InProcess, Located>>(*this);
}

void InProcess::set_shared(bool shared) {
  shared_ = shared;
  states_.set_shared(shared);
}

void InProcess::fetch(Located& own, Batch& batch, ps::Purpose purpose) {
  clear_gradients(plan_, batch);
  fetch_rows(own, batch, purpose);
  for (size_t i = 0; i < plan_.parameters.size(); ++i) {
    Tensor& feed = batch.feeds[plan_.parameters[i].name];
    if (!shared_)
      feed = store_.parameter_tensor(i);
    else
      fetch_copy(i, feed);
  }
  states_.fetch(batch);
}

void InProcess::fetch_rows(Located& own, Batch& batch, ps::Purpose purpose) {
  fetch_located(plan_, store_, batch, purpose, own.tickets);
}

void InProcess::fetch_copy(size_t parameter, Tensor& feed) {
  feed.renew(store_.parameter_tensor(parameter).shape(), DType::f32);
  store_.parameter(parameter).read(feed.as<float>());
}

void fetch_located(const Plan& plan, LocalStore& store, Batch& batch, ps::Purpose purpose,
                   std::vector<ps::Ticket>& tickets) {
  tickets.resize(plan.tables.size());
  for (size_t i = 0; i < tickets.size(); ++i) {
    const std::vector<Key>& keys = batch.keys[plan.key_sets[i]];
    Tensor& feed = batch.feeds[plan.tables[i].name];
    feed.renew({static_cast<int64_t>(keys.size()), static_cast<int64_t>(plan.tables[i].dim)},
               DType::f32);
    read_rows(store.table(i), keys, columns_of(batch, plan.key_sets[i]), purpose, feed.as<float>(),
              tickets[i]);
  }
}

}  // namespace argosy

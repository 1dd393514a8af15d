#include "argosy/fleet/in_process.h"

namespace argosy {
namespace {

struct FoundRows final : Carried {
  std::vector<SparseTable::Located> tables;
};

}  // namespace

InProcess::InProcess(const Plan& plan, int lookahead)
    : Communicator(lookahead), plan_(plan), states_(plan), store_(plan, states_) {}

void InProcess::set_shared(bool shared) {
  shared_ = shared;
  states_.set_shared(shared);
}

std::vector<SparseTable::Located>& InProcess::found_rows(const Batch& batch) {
  return static_cast<FoundRows&>(*batch.carried).tables;
}

void InProcess::fetch(Batch& batch, Purpose purpose) {
  batch.grads.assign(plan_.tables.size(), {});
  fetch_rows(batch, purpose);
  for (size_t i = 0; i < plan_.tables.size(); ++i) {
    if (store_.sparse(i) != nullptr) continue;
    Tensor& feed = batch.feeds[plan_.tables[i].name];
    if (!shared_)
      feed = store_.parameter(i);
    else
      fetch_copy(i, feed);
  }
  states_.fetch(batch);
}

void InProcess::fetch_rows(Batch& batch, Purpose purpose) {
  if (batch.carried == nullptr) {
    batch.carried = std::make_unique<FoundRows>();
    found_rows(batch).resize(plan_.tables.size());
  }
  for (size_t i = 0; i < plan_.tables.size(); ++i)
    if (store_.sparse(i) != nullptr)
      fetch_table(batch, i, purpose, batch.feeds[plan_.tables[i].name]);
}

void InProcess::fetch_table(const Batch& batch, size_t table, Purpose purpose, Tensor& feed) {
  const std::vector<Key>& keys = batch.keys[plan_.key_sets[table]];
  feed.renew({static_cast<int64_t>(keys.size()), static_cast<int64_t>(plan_.tables[table].dim)},
             DType::f32);
  if (purpose == Purpose::inference)
    store_.sparse(table)->pull_existing(keys, feed.as<float>());
  else
    store_.sparse(table)->pull(keys, feed.as<float>(), {}, found_rows(batch)[table]);
}

void InProcess::fetch_copy(size_t table, Tensor& feed) {
  feed.renew(store_.parameter(table).shape(), DType::f32);
  store_.dense(table)->pull_all(feed.as<float>());
}

}  // namespace argosy

#include "argosy/modes/ranks/rank_rows.h"

#include <algorithm>

#include "argosy/base/isa.h"
#include "argosy/modes/in_process.h"

namespace argosy {

RankRows::RankRows(comm::Group& group, const Plan& plan, LocalStore& store)
    : group_(group),
      plan_(plan),
      store_(store),
      sets_(plan.layout.key_sets),
      own_counts_(sets_.size()),
      counts_(sets_.size() * static_cast<size_t>(group.size())) {
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    tables_.push_back({.dim = plan.tables[i].dim});
    sets_[plan.key_sets[i]].used = true;
  }
}

void RankRows::begin_step() {
  for (KeySet& set : sets_) {
    set.mine.clear();
    set.closed_up = false;
  }
  for (Table& table : tables_) table.mine.clear();
}

void RankRows::fetch(Batch* batch) {
  if (batch == nullptr) return;
  fetch_located(plan_, store_, *batch, ps::Purpose::training, tickets_);
  for (size_t i = 0; i < sets_.size(); ++i) {
    if (!sets_[i].used) continue;
    for (const Key key : batch->keys[i]) sets_[i].mine.push_back(static_cast<int64_t>(key));
  }
}

void RankRows::infer(Batch& batch) {
  fetch_located(plan_, store_, batch, ps::Purpose::inference, tickets_);
}

void RankRows::end_fetches() {
  if (tables_.empty()) return;
  for (size_t i = 0; i < sets_.size(); ++i) {
    sets_[i].own = sets_[i].mine.size();
    own_counts_[i] = static_cast<int64_t>(sets_[i].own);
  }
  counts_work_ = group_.start(
      comm::calls::all_gather(group_, std::span<const int64_t>(own_counts_), std::span(counts_)));
}

void RankRows::send_keys() {
  counts_work_.wait();
  const auto ranks = static_cast<size_t>(group_.size());
  for (size_t i = 0; i < sets_.size(); ++i) {
    KeySet& set = sets_[i];
    set.most = 0;
    for (size_t rank = 0; rank < ranks; ++rank)
      set.most = std::max(set.most, static_cast<size_t>(count_of(rank, i)));
    if (!set.used || set.most == 0) continue;
    set.mine.resize(set.most);
    set.all.resize(set.most * ranks);
    set.work = group_.start(
        comm::calls::all_gather(group_, std::span<const int64_t>(set.mine), std::span(set.all)));
  }
}

void RankRows::put(size_t table, std::span<const float> grad, float share) {
  std::vector<float>& mine = tables_[table].mine;
  const size_t before = mine.size();
  mine.resize(before + grad.size());
  vectorized([x = grad.data(), y = mine.data() + before, n = grad.size(), share] {
    for (size_t i = 0; i < n; ++i) y[i] = x[i] * share;
  });
}

void RankRows::scale(float factor) {
  for (Table& table : tables_)
    for (float& value : table.mine) value *= factor;
}

void RankRows::send(size_t number) {
  Table& table = tables_[number];
  const size_t most = sets_[plan_.key_sets[number]].most * table.dim;
  if (most == 0) return;
  table.mine.resize(most);
  table.all.resize(most * static_cast<size_t>(group_.size()));
  table.work = group_.start(
      comm::calls::all_gather(group_, std::span<const float>(table.mine), std::span(table.all)));
}

/// Leaves out what fills up the parts of ranks with fewer keys.
template <class T>
size_t RankRows::close_up(std::vector<T>& all, size_t set, size_t width) const {
  const size_t most = sets_[set].most * width;
  size_t end = 0;
  for (size_t rank = 0; rank < static_cast<size_t>(group_.size()); ++rank) {
    const size_t size = static_cast<size_t>(count_of(rank, set)) * width;
    if (end != rank * most) std::copy_n(all.data() + rank * most, size, all.data() + end);
    end += size;
  }
  return end;
}

RankRows::Rows RankRows::take(size_t number) {
  Table& table = tables_[number];
  const size_t set_number = plan_.key_sets[number];
  KeySet& set = sets_[set_number];
  if (set.most == 0) return {};
  set.work.wait();
  table.work.wait();
  if (!set.closed_up) set.all.resize(close_up(set.all, set_number, 1));
  set.closed_up = true;
  const size_t floats = close_up(table.all, set_number, table.dim);
  // A key is the same bits, signed or not.
  const Key* const keys = reinterpret_cast<const Key*>(set.all.data());
  return {{keys, set.all.size()}, {table.all.data(), floats}};
}

}  // namespace argosy

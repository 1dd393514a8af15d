// Invariants:
//   1. All ranks run the same rounds, one per batch of a step and one more each time infer() or
//      infer_nothing() is called: first the keys (KeyRound), then one block of rows from every rank
//      to every rank. Block sizes depend on the counts of all ranks only, so all agree on them.
//   2. A Round is in one place: prepared_ (batches read ahead, in order), next_ (its keys are being
//      sent), step_ (its rows have been read, its gradients are due) or spare_ (unused). step_ is
//      emptied by the next begin_step(), after its gradients have been sent.
//   3. Only with ahead_ is there a next_: told after a batch's rows have been exchanged, sent in
//      send_keys(). If any rank is `unknown`, no rank sends, and round_of() tells it once more.
//   4. A rank whose pass ended after its keys were sent has no gradients for them. settle() finds
//      out, and each_part() then leaves that rank's part out.
//   5. Gradients of a step are taken in the order of ranks, then of batches, for every table.
#include "argosy/modes/ranks/sharded_rows.h"

#include <algorithm>
#include <utility>

#include "argosy/base/error.h"

namespace argosy {

ShardedRows::ShardedRows(comm::Group& group, const Plan& plan, LocalStore& store, int batches)
    : group_(group),
      plan_(plan),
      store_(store),
      placement_(ps::place({}, plan.tables, plan.key_sets, static_cast<uint32_t>(group.size()))),
      ahead_(lookahead(batches) > 0),
      asked_(group, placement_, plan.layout.key_sets),
      owned_(plan.layout.key_sets) {
  for (size_t i = 0; i < plan.tables.size(); ++i)
    tables_.push_back({.dim = plan.tables[i].dim, .set = plan.key_sets[i]});
}

/// Calls in progress use memory of this object.
ShardedRows::~ShardedRows() {
  try {
    if (next_ != nullptr) next_->keys.wait();
    for (const auto& round : step_)
      for (Round::Gradients& grads : round->grads) grads.work.wait();
  } catch (const std::exception&) {
    return;  // the group has failed: no call is in progress
  }
}

std::unique_ptr<ShardedRows::Round> ShardedRows::new_round() {
  if (spare_.empty())
    return std::make_unique<Round>(group_, placement_, plan_.layout.key_sets, tables_.size());
  std::unique_ptr<Round> round = std::move(spare_.back());
  spare_.pop_back();
  round->has_grads = false;
  round->has_grads_of.clear();
  return round;
}

void ShardedRows::prepare(const Batch& batch) {
  prepared_.push_back(new_round());
  prepared_.back()->keys.set(batch);
}

void ShardedRows::begin_pass() {
  prepared_.clear();
  if (next_ != nullptr) next_->keys.wait();
  next_ = nullptr;
  has_ended_ = false;
}

void ShardedRows::begin_step() {
  for (auto& round : step_) {
    for (Round::Gradients& grads : round->grads) grads.work.wait();
    spare_.push_back(std::move(round));
  }
  step_.clear();
  for (Owned& owned : owned_) owned.is_collected = false;
}

/// The round whose keys have been sent, or one that sends them now, as a rank did not know its own.
std::unique_ptr<ShardedRows::Round> ShardedRows::round_of(const Batch* batch) {
  std::unique_ptr<Round> round = std::move(next_);
  if (round != nullptr && round->keys.is_started()) {
    check<Error>(batch == nullptr || round->keys.batch() == batch,
                 "a batch is fetched whose keys were not the next to be prepared");
    round->keys.wait();
    return round;
  }
  if (round == nullptr || round->keys.batch() != batch || batch == nullptr) {
    if (round != nullptr) spare_.push_back(std::move(round));
    const bool is_prepared = !prepared_.empty() && prepared_.front()->keys.batch() == batch;
    round = is_prepared ? std::move(prepared_.front()) : new_round();
    if (is_prepared) prepared_.erase(prepared_.begin());
    if (!is_prepared && batch != nullptr) round->keys.set(*batch);
    if (batch == nullptr) round->keys.set(Says::nothing);
  }
  round->keys.exchange();
  return round;
}

void ShardedRows::tell_next() {
  if (!ahead_) return;
  if (prepared_.empty() || has_ended_) {
    next_ = new_round();
    next_->keys.set(has_ended_ ? Says::nothing : Says::unknown);
  } else {
    next_ = std::move(prepared_.front());
    prepared_.erase(prepared_.begin());
  }
  next_->keys.start_telling();
}

void ShardedRows::send_keys() {
  if (next_ != nullptr) next_->keys.start_sending();
}

const ShardedRows::Round& ShardedRows::run_round(const Batch* batch) {
  step_.push_back(round_of(batch));
  exchange_rows(step_.back()->keys, ps::Purpose::training);
  tell_next();
  return *step_.back();
}

void ShardedRows::fetch(Batch* batch) {
  if (batch == nullptr) has_ended_ = true;
  const Round& round = run_round(batch);
  if (batch != nullptr) hand_over(round.keys, *batch);
}

void ShardedRows::infer(Batch& batch) {
  asked_.set(batch);
  asked_.exchange();
  exchange_rows(asked_, ps::Purpose::inference);
  hand_over(asked_, batch);
}

bool ShardedRows::infer_nothing() {
  asked_.set(Says::nothing);
  asked_.exchange();
  exchange_rows(asked_, ps::Purpose::inference);
  return asked_.any(Says::keys);
}

/// Owners read rows in the order of the ranks that ask, as one process does with their batches.
void ShardedRows::exchange_rows(const KeyRound& keys, ps::Purpose purpose) {
  row_block_ = 0;
  for (const Table& table : tables_) row_block_ += keys.most(table.set) * table.dim;
  if (row_block_ == 0) return;
  rows_out_.resize(row_block_ * ranks());
  rows_in_.resize(row_block_ * ranks());
  for (size_t rank = 0; rank < ranks(); ++rank) {
    size_t at = rank * row_block_;
    for (size_t i = 0; i < tables_.size(); ++i) {
      const Table& table = tables_[i];
      const std::span<const Key> asked = keys.keys_of(rank, table.set);
      const auto rows = std::span(rows_out_).subspan(at, asked.size() * table.dim);
      KeyColumns columns;
      keys.add_columns_of(rank, table.set, columns);
      read_rows(store_.table(i), asked, {columns.counts, columns.shows, columns.clicks}, purpose,
                rows, ticket_);
      at += keys.most(table.set) * table.dim;
    }
  }
  group_.all_to_all(std::span<const float>(rows_out_), std::span(rows_in_));
}

void ShardedRows::hand_over(const KeyRound& keys, Batch& batch) const {
  size_t offset = 0;
  for (size_t i = 0; i < tables_.size(); ++i) {
    const Table& table = tables_[i];
    const size_t dim = table.dim;
    Tensor& feed = batch.feeds[plan_.tables[i].name];
    feed.renew({static_cast<int64_t>(batch.keys[table.set].size()), static_cast<int64_t>(dim)},
               DType::f32);
    float* const to = feed.as<float>().data();
    for (size_t owner = 0; owner < ranks(); ++owner) {
      const float* from = rows_in_.data() + owner * row_block_ + offset;
      for (const uint32_t place : keys.places(owner, table.set)) {
        std::copy_n(from, dim, to + place * dim);
        from += dim;
      }
    }
    offset += keys.most(table.set) * dim;
  }
}

void ShardedRows::put(size_t number, std::span<const float> grad, float share) {
  const Table& table = tables_[number];
  Round& round = *step_.back();
  std::vector<float>& mine = round.grads[number].mine;
  const size_t dim = table.dim, part = round.keys.most(table.set) * dim;
  mine.resize(part * ranks());
  round.has_grads = true;
  for (size_t owner = 0; owner < ranks(); ++owner) {
    float* to = mine.data() + owner * part;
    for (const uint32_t place : round.keys.places(owner, table.set)) {
      const float* const from = grad.data() + place * dim;
      for (size_t i = 0; i < dim; ++i) to[i] = from[i] * share;
      to += dim;
    }
  }
}

void ShardedRows::scale(float factor) {
  for (const auto& round : step_)
    for (Round::Gradients& grads : round->grads)
      for (float& value : grads.mine) value *= factor;
}

void ShardedRows::send(size_t number) {
  const Table& table = tables_[number];
  for (const auto& round : step_) {
    const size_t floats = round->keys.most(table.set) * table.dim * ranks();
    if (floats == 0) continue;
    Round::Gradients& grads = round->grads[number];
    grads.mine.resize(floats);
    grads.theirs.resize(floats);
    grads.work = group_.start(comm::calls::all_to_all(group_, std::span<const float>(grads.mine),
                                                      std::span(grads.theirs)));
  }
}

void ShardedRows::settle(int active) {
  if (!ahead_ || active == step_.back()->keys.count(Says::keys)) return;
  Round& round = *step_.back();
  const int32_t own = round.has_grads ? 1 : 0;
  round.has_grads_of.resize(ranks());
  group_.all_gather(std::span(&own, 1), std::span(round.has_grads_of));
}

/// use(rank, round) for all that came, in the order of ranks, then of their batches.
template <class F>
void ShardedRows::each_part(size_t set, const F& use) const {
  for (size_t rank = 0; rank < ranks(); ++rank)
    for (const auto& round : step_)
      if (round->keys.most(set) > 0 &&
          (round->has_grads_of.empty() || round->has_grads_of[rank] != 0))
        use(rank, *round);
}

RowGradients::Rows ShardedRows::take(size_t number) {
  Table& table = tables_[number];
  Owned& owned = owned_[table.set];
  if (!std::exchange(owned.is_collected, true)) {
    owned.keys.clear();
    owned.columns = {};
    each_part(table.set, [&](size_t rank, const Round& round) {
      const std::span<const Key> keys = round.keys.keys_of(rank, table.set);
      owned.keys.insert(owned.keys.end(), keys.begin(), keys.end());
      round.keys.add_columns_of(rank, table.set, owned.columns);
    });
  }
  for (const auto& round : step_) round->grads[number].work.wait();
  table.all.resize(owned.keys.size() * table.dim);
  float* to = table.all.data();
  each_part(table.set, [&](size_t rank, const Round& round) {
    const std::vector<float>& theirs = round.grads[number].theirs;
    const size_t part = round.keys.most(table.set) * table.dim;
    to = std::copy_n(theirs.data() + rank * part,
                     round.keys.keys_of(rank, table.set).size() * table.dim, to);
  });
  const KeyColumns& columns = owned.columns;
  return {owned.keys, table.all, {columns.counts, columns.shows, columns.clicks}};
}

}  // namespace argosy

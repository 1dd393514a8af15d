// local: parameters and tables live in this process and are updated in place.
#include <algorithm>

#include "argosy/base/denormals.h"
#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/modes/batch_gradients.h"
#include "argosy/modes/in_process.h"
#include "argosy/modes/mode.h"
#include "argosy/ps/row_sums.h"

namespace argosy::communicators {
namespace {

/// The gradients of several batches, each taken with an equal share, as a server does in sync
/// mode: in the order in which they came.
class Accumulated {
 public:
  Accumulated(const Plan& plan, int batches)
      : plan_(plan),
        share_(1.0F / static_cast<float>(batches)),
        sums_(plan.parameters.size()),
        rows_(plan.tables.size()) {}

  struct Rows {
    std::vector<Key> keys;  // one may come more than once
    std::vector<float> grads;
    KeyColumns columns;
  };

  void add(const Batch& batch) {
    for (size_t parameter = 0; parameter < sums_.size(); ++parameter) {
      const std::span<const float> grad = batch.grads[parameter];
      if (batches_ > 0)
        for (size_t i = 0; i < grad.size(); ++i) sums_[parameter][i] += grad[i] * share_;
      else
        for (const float value : grad) sums_[parameter].push_back(value * share_);
    }
    for (size_t table = 0; table < rows_.size(); ++table) {
      Rows& rows = rows_[table];
      for (const float value : batch.row_grads[table]) rows.grads.push_back(value * share_);
      const std::vector<Key>& keys = batch.keys[plan_.key_sets[table]];
      rows.keys.insert(rows.keys.end(), keys.begin(), keys.end());
      if (batch.key_columns.empty()) continue;
      const KeyColumns& columns = batch.key_columns[plan_.key_sets[table]];
      const auto append = [](auto& to, const auto& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      append(rows.columns.counts, columns.counts);
      append(rows.columns.shows, columns.shows);
      append(rows.columns.clicks, columns.clicks);
    }
    ++batches_;
  }
  int batches() const { return batches_; }
  std::span<const float> sum(size_t parameter) const { return sums_[parameter]; }
  const Rows& rows(size_t table) const { return rows_[table]; }
  void clear() {
    for (std::vector<float>& sum : sums_) sum.clear();
    for (Rows& rows : rows_) {
      rows.keys.clear();
      rows.grads.clear();
      rows.columns = {};
    }
    batches_ = 0;
  }

 private:
  const Plan& plan_;
  const float share_;
  std::vector<std::vector<float>> sums_;  // by parameter
  std::vector<Rows> rows_;                // by table
  int batches_ = 0;
};

class Local final : public InProcess {
 public:
  Local(const Plan& plan, const Strategy& strategy, const ps::TableHome& home)
      : InProcess(plan, home), accumulate_(strategy.accumulate), accumulated_(plan, accumulate_) {
    check<ConfigError>(accumulate_ > 0, "accumulate must be positive, got ", accumulate_);
    set_threads(strategy.threads);
  }

  void set_threads(int threads) override {
    check<ConfigError>(accumulate_ == 1 || threads == 1,
                       "gradients of several batches are added up on one thread, got ", threads);
    set_shared(threads > 1);
  }

  void deliver(Batch& batch, const Edge& edge, const Tensor& value) override {
    put_value(batch, edge, value);
  }

  void commit(Located& own, Batch& batch) override {
    const FlushDenormals flush;
    check_gradients(plan(), batch);
    if (!plan().clip.empty()) {
      const Lock lock(clip_mutex_);
      clip_.apply(batch);
      apply(own, batch);
    } else {
      apply(own, batch);
    }
    states().commit(batch);
  }

  void pass(Pass) override {}

 private:
  void apply(Located& own, const Batch& batch) {
    if (accumulate_ > 1) return accumulate(batch);
    const uint64_t step = ++tables().step;
    for (size_t i = 0; i < plan().parameters.size(); ++i)
      tables().parameter(i).apply(batch.grads[i], step);
    for (size_t i = 0; i < plan().tables.size(); ++i)
      apply_located(tables().table(i), own.tickets[i], batch.row_grads[i], step);
  }

  void accumulate(const Batch& batch) {
    accumulated_.add(batch);
    if (accumulated_.batches() < accumulate_) return;
    const uint64_t step = ++tables().step;
    for (size_t i = 0; i < plan().parameters.size(); ++i)
      tables().parameter(i).apply(accumulated_.sum(i), step);
    for (size_t i = 0; i < plan().tables.size(); ++i) {
      const Accumulated::Rows& rows = accumulated_.rows(i);
      const KeyColumns& columns = rows.columns;
      apply_rows(tables().table(i), rows.keys, {columns.counts, columns.shows, columns.clicks},
                 rows.grads, step, sums_, ticket_);
    }
    accumulated_.clear();
  }

  const int accumulate_;
  Accumulated accumulated_;
  ps::RowSums sums_;
  ps::Ticket ticket_;
  Mutex clip_mutex_;
  BatchClip clip_{plan()};
};

std::unique_ptr<Communicator> make(const Plan& plan, const Strategy& strategy, const Wires& wires) {
  return train_in_process(plan, strategy, wires.home);
}

}  // namespace

Mode local() { return {.needs = Mode::Needs::nothing, .make = make}; }

}  // namespace argosy::communicators

namespace argosy {

std::unique_ptr<InProcess> train_in_process(const Plan& plan, const Strategy& strategy,
                                            const ps::TableHome& home) {
  return std::make_unique<communicators::Local>(plan, strategy, home);
}

}  // namespace argosy

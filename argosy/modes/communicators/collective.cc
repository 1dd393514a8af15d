// collective: every rank holds all parameters, and all rows or those that it owns. Gradients are
// summed over the ranks while backward still runs, and each rank applies the same update.
//
// Invariants:
//   1. All ranks make the same calls of the group in the same order. Within a step these are the
//      fetches of rows, one per batch, then the keys, then the buckets in the order of buckets_,
//      whatever the order of deliveries.
//   2. A step is `accumulate` batches of each rank; batches_ counts those committed so far. Only
//      the last one sends. missing_[b] counts the gradients of bucket b that the current batch has
//      not delivered. A bucket is sent when none are missing and all before it are sent; the last
//      one, and without overlap all of them, in commit.
//   3. A rank that has run out of batches takes part in the steps of the others without a gradient
//      (after sending the rest of an incomplete step, rescaled) until a step in which no rank had a
//      batch. That step changes nothing, and ends the pass for all.
//   4. After a step all ranks have the same step number and parameters, and replicated rows, to the
//      bit: the sums are the same everywhere. Every check_every steps that is verified. States are
//      each rank's own until the pass ends, when they are averaged.
#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/denormals.h"
#include "argosy/base/error.h"
#include "argosy/base/isa.h"
#include "argosy/comm/group.h"
#include "argosy/modes/batch_gradients.h"
#include "argosy/modes/clip.h"
#include "argosy/modes/in_process.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/ranks/agreement.h"
#include "argosy/modes/ranks/bucket_sums.h"
#include "argosy/modes/ranks/buckets.h"
#include "argosy/modes/ranks/group_sum.h"
#include "argosy/modes/ranks/overlap.h"
#include "argosy/modes/ranks/rank_rows.h"
#include "argosy/modes/ranks/sharded_rows.h"
#include "argosy/modes/ranks/sharded_store.h"
#include "argosy/ps/row_sums.h"

namespace argosy::communicators {
namespace {

void multiply(std::span<float> values, float factor) {
  vectorized([x = values.data(), n = values.size(), factor] {
    for (size_t i = 0; i < n; ++i) x[i] *= factor;
  });
}

/// Everything that must be the same on every rank, as text.
std::string agreed_text(const Plan& plan, const Strategy& strategy, const Buckets& buckets) {
  const CollectiveStrategy& own = strategy.collective;
  std::string text = fmt::format(
      "collective: gradients {}{}, sent as {}, {} batch{} a step ({}), compared every {} steps\n",
      own.scale == GradientScale::mean ? "mean" : "sum", own.deterministic ? " deterministic" : "",
      own.wire, strategy.accumulate, strategy.accumulate == 1 ? "" : "es",
      strategy.accumulate_mean ? "mean" : "sum", own.check_every);
  for (const ps::TableSpec& spec : plan.tables)
    text += fmt::format("rows of {} begin with seed {}, {}\n", spec.name, spec.seed,
                        name(own.embedding));
  return text + buckets.text(plan) + plan.text();
}

/// Without overlap one bucket is best: there is nothing to hide the sums behind.
CollectiveStrategy with_buckets(CollectiveStrategy strategy, bool overlap) {
  constexpr double kAnySize = 1e9;
  if (!overlap && strategy.overlap == Overlap::automatic && strategy.bucket_mb == 0)
    strategy.bucket_mb = kAnySize;
  return strategy;
}

bool has_sharded_rows(const Plan& plan, const Strategy& strategy) {
  return strategy.collective.embedding == EmbeddingMode::sharded && !plan.tables.empty();
}

/// Refuses settings that would make ranks diverge.
void check_tables(const Plan& plan, EmbeddingMode embedding) {
  for (const ps::TableSpec& spec : plan.tables) {
    check<ConfigError>(spec.entry.empty() || embedding == EmbeddingMode::sharded,
                       "collective: table '", spec.name, "' has the entry ", spec.entry,
                       ", which counts what one rank sees; expected none, or embedding_mode: "
                       "sharded");
    check<ConfigError>(plan.clip.empty(), "collective: clip ", plan.clip,
                       " is not there for models with tables of rows, as '", spec.name,
                       "' is; expected value(x) or none");
  }
}

class CollectiveTraining final : public InProcess {
 public:
  CollectiveTraining(const Plan& plan, const Strategy& strategy, const Wires& wires)
      : InProcess(
            plan, wires.home,
            has_sharded_rows(plan, strategy) ? ShardedRows::lookahead(strategy.accumulate) : 0),
        strategy_(strategy),
        group_(wires.group),
        overlap_(overlaps(*group_, strategy.collective.overlap)),
        buckets_(make_buckets(plan, with_buckets(strategy.collective, overlap_))),
        sums_(*group_, buckets_, strategy_),
        missing_(buckets_.all.size()),
        delivered_(plan.parameters.size()),
        delivered_rows_(plan.tables.size()),
        op_sums_(sum_over_ranks_sizes(plan.worker)),
        dirty_(plan.tables.size()) {
    group_->set_overlap(overlap_);
    check_same_text(*group_, agreed_text(plan, strategy, buckets_));
    duties_.rank = static_cast<uint64_t>(group_->rank());
    duties_.ranks = static_cast<uint64_t>(group_->size());
    if (!op_sums_.empty() && group_->size() > 1) {
      group_sum_.emplace(*group_);
      duties_.sum = &*group_sum_;
    }
    if (has_sharded_rows(plan, strategy)) {
      auto rows = std::make_unique<ShardedRows>(*group_, plan, tables(), strategy.accumulate);
      sharded_store_ = std::make_unique<ShardedStore>(*group_, tables(), *rows);
      duties_.sharded = sharded_store_.get();
      rows_ = std::move(rows);
    } else {
      rows_ = std::make_unique<RankRows>(*group_, plan, tables());
    }
    if (strategy.accumulate == 1 && sums_.share() == 1) offer_places();
  }

  void set_threads(int threads) override {
    check<ConfigError>(threads == 1, "collective: the threads of a rank share one batch, got ",
                       threads, "; give chunks");
  }

  void prepare(Located&, Batch& batch) override { rows_->prepare(batch); }

  void fetch(Located& own, Batch& batch, ps::Purpose purpose) override {
    if (purpose == ps::Purpose::training) begin_batch();
    InProcess::fetch(own, batch, purpose);
    if (purpose == ps::Purpose::training && ends_step()) rows_->end_fetches();
  }

  void deliver(Batch& batch, const Edge& edge, const Tensor& value) override {
    if (edge.kind == VarKind::state) return put_value(batch, edge, value);
    const bool is_table = edge.kind == VarKind::rows;
    auto delivered = (is_table ? delivered_rows_ : delivered_)[edge.target];
    check<Error>(!delivered, "the gradient of '", plan().worker.var(edge.var).name,
                 "' was delivered twice");
    delivered = true;
    if (is_table)
      rows_->put(edge.target, value.as<float>(), sums_.whole_share());
    else
      sums_.put(edge.target, value.as<float>(), batches_ == 0);
    --missing_[(is_table ? buckets_.of_table : buckets_.of_parameter)[edge.target]];
    if (ends_step() && overlap_) send_ready(BucketSums::When::later);
  }

  void commit(Located&, Batch& batch) override {
    const FlushDenormals flush;
    for (size_t i = 0; i < delivered_.size(); ++i)
      check<Error>(delivered_[i], "no gradient was delivered for '", plan().parameters[i].name,
                   "'");
    for (size_t i = 0; i < delivered_rows_.size(); ++i)
      check<Error>(delivered_rows_[i], "no gradient was delivered for '", plan().tables[i].name,
                   "'");
    states().commit(batch);
    ++pass_batches_;
    if (!ends_step()) {
      ++batches_;
      return;
    }
    end_step();
  }

  void pass(Pass event) override {
    if (event == Pass::loaded || event == Pass::begin) begin_pass();
    if (event == Pass::thread_done) join_the_others();
    if (event == Pass::end) end_pass();
  }

  TableStore& store() override { return has_all_rows() ? InProcess::store() : *sharded_store_; }
  RankDuties duties() override { return duties_; }

  std::vector<std::string> notes() override {
    if (joined_ == 0) return {};
    return {fmt::format("rank {} had no batch in the last {} steps of the pass", group_->rank(),
                        joined_)};
  }

 protected:
  void fetch_rows(Located&, Batch& batch, ps::Purpose purpose) override {
    if (purpose == ps::Purpose::training) return rows_->fetch(&batch);
    if (has_all_rows()) return rows_->infer(batch);
    sharded_store_->infer(batch);  // which others may have to be told of
  }

 private:
  bool has_all_rows() const { return sharded_store_ == nullptr; }

  /// Lets backward write gradients directly to the memory that is summed.
  void offer_places() {
    std::vector<Tensor> places(plan().parameters.size());
    for (size_t i = 0; i < places.size(); ++i)
      if (buckets_.placed[i])
        places[i] =
            Tensor::wrap(sums_.place(i).data(), tables().parameter_tensor(i).shape(), DType::f32);
    duties_.places = std::move(places);
  }

  bool ends_step() const { return batches_ + 1 == strategy_.accumulate; }

  void begin_batch() {
    if (batches_ == 0) rows_->begin_step();
    delivered_.assign(delivered_.size(), false);
    delivered_rows_.assign(delivered_rows_.size(), false);
    for (size_t i = 0; i < missing_.size(); ++i)
      missing_[i] = buckets_.all[i].rows ? 1 : buckets_.all[i].members.size();
    sent_ = 0;
    keys_are_sent_ = plan().tables.empty();
  }

  /// Sends the complete buckets, in the same order on every rank whatever the order of deliveries.
  void send_ready(BucketSums::When last) {
    if (!std::exchange(keys_are_sent_, true)) rows_->send_keys();
    // Leave the last one to commit: there is nothing left to overlap with.
    const size_t end = buckets_.all.size() - (last == BucketSums::When::later ? 1 : 0);
    for (; sent_ < end && missing_[sent_] == 0; ++sent_) {
      const Bucket& bucket = buckets_.all[sent_];
      const bool now = sent_ + 1 == buckets_.all.size();
      if (bucket.rows)
        rows_->send(*bucket.rows);
      else
        sums_.sum(sent_, now ? BucketSums::When::now : BucketSums::When::later);
    }
  }

  /// This rank's part of the step is complete. False: no rank had a batch.
  bool end_step() {
    send_ready(BucketSums::When::now);
    batches_ = 0;
    const int active = sums_.finish();
    if (active == 0) return false;
    rows_->settle(active);
    apply(sums_.correction(active));
    return true;
  }

  void apply(float correction) {
    const uint64_t step = ++tables().step;
    for (size_t i = 0; i < plan().tables.size(); ++i) {
      const RowGradients::Rows rows = rows_->take(i);
      if (correction != 1) multiply(rows.grads, correction);
      apply_rows(tables().table(i), rows.keys, rows.columns, rows.grads, step, row_sums_, ticket_);
      if (!compared_rows().empty()) dirty_[i].add(rows.keys);
    }
    grads_.clear();
    for (size_t i = 0; i < plan().parameters.size(); ++i) {
      const std::span<float> grad = sums_.place(i);
      if (correction != 1) multiply(grad, correction);
      grads_.emplace_back(grad);
    }
    clip_.apply(grads_);
    for (size_t i = 0; i < grads_.size(); ++i) tables().parameter(i).apply(grads_[i], step);
    const uint64_t every = strategy_.collective.check_every;
    if (every > 0 && step % every == 0)
      check_same_values(*group_, plan(), tables(), compared_rows(), Compared::recent);
  }

  /// Rows that all ranks must agree on; none in sharded mode.
  std::span<DirtyRows> compared_rows() {
    if (!has_all_rows() || strategy_.collective.check_every == 0) return {};
    return dirty_;
  }

  void begin_pass() {
    joined_ = pass_batches_ = 0;
    rows_->begin_pass();
    const bool rows = std::exchange(seen_loads_, tables().loads()) != tables().loads();
    take_from_first(*group_, tables(), rows && has_all_rows());
  }

  /// This rank is out of batches: takes part in the others' steps without a gradient until no rank
  /// has one.
  void join_the_others() {
    const FlushDenormals flush;
    for (bool more = true; more;) {
      const bool rest = batches_ > 0;  // batches that would have made a step with others
      if (rest) {
        rows_->scale(sums_.end_at(batches_));
      } else {
        begin_batch();
        sums_.put_nothing();
      }
      std::ranges::fill(missing_, 0);
      sent_ = 0;
      keys_are_sent_ = plan().tables.empty();
      // Serves the fetches of the others, once for each batch that this rank does not have.
      for (int i = batches_; i < strategy_.accumulate; ++i) {
        rows_->fetch(nullptr);
        if (i + 1 == strategy_.accumulate) rows_->end_fetches();
        if (group_sum_) group_sum_->add_nothing(op_sums_);
      }
      more = end_step();
      if (more && !rest) ++joined_;
    }
  }

  void end_pass() {
    average_states(*group_, plan(), tables(), pass_batches_);
    if (strategy_.collective.check_every > 0)
      check_same_values(*group_, plan(), tables(), compared_rows(), Compared::all);
  }

  const Strategy strategy_;
  const std::shared_ptr<comm::Group> group_;
  const bool overlap_;
  const Buckets buckets_;
  BucketSums sums_;
  std::unique_ptr<RowsOfRanks> rows_;
  std::unique_ptr<ShardedStore> sharded_store_;  // null: every rank has all rows
  RankDuties duties_;
  NormClip clip_{plan().clip};
  int batches_ = 0;                               // of the step that is being made
  std::vector<size_t> missing_;                   // by bucket: gradients
  std::vector<bool> delivered_, delivered_rows_;  // by parameter, by table
  size_t sent_ = 0;                               // buckets of this step
  bool keys_are_sent_ = false;
  uint64_t joined_ = 0, pass_batches_ = 0;  // of the pass: steps, batches of this rank
  const std::vector<size_t> op_sums_;       // that the ops of a batch make over all ranks
  std::optional<GroupSumOverRanks> group_sum_;
  ps::RowSums row_sums_;
  ps::Ticket ticket_;
  std::vector<DirtyRows> dirty_;  // by table
  uint64_t seen_loads_ = 0;
  std::vector<std::span<const float>> grads_;  // by parameter
};

std::unique_ptr<Communicator> make(const Plan& plan, const Strategy& strategy, const Wires& wires) {
  check<ConfigError>(strategy.accumulate > 0, "accumulate must be positive, got ",
                     strategy.accumulate);
  check_tables(plan, strategy.collective.embedding);
  return std::make_unique<CollectiveTraining>(plan, strategy, wires);
}

}  // namespace

Mode collective() {
  return {.needs = Mode::Needs::ranks, .threads_share_a_batch = true, .make = make};
}

}  // namespace argosy::communicators

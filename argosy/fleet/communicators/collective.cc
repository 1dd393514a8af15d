// collective: every rank holds all parameters, and all rows or those that it owns. Gradients become
// those of all ranks while backward still runs, and each rank applies the same update.
#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/denormals.h"
#include "argosy/base/error.h"
#include "argosy/base/isa.h"
#include "argosy/comm/group.h"
#include "argosy/fleet/agreement.h"
#include "argosy/fleet/clip.h"
#include "argosy/fleet/group_sum.h"
#include "argosy/fleet/in_process.h"
#include "argosy/fleet/parcels.h"
#include "argosy/fleet/rank_rows.h"
#include "argosy/fleet/rank_sums.h"
#include "argosy/fleet/sharded_rows.h"
#include "argosy/fleet/sharded_store.h"

namespace argosy::communicators {
namespace {

void multiply(std::span<float> values, float factor) {
  vectorized([x = values.data(), n = values.size(), factor] {
    for (size_t i = 0; i < n; ++i) x[i] *= factor;
  });
}

/// What must be the same on every rank, as a text.
std::string agreed_text(const Plan& plan, const Strategy& strategy, const Parcels& parcels) {
  const CollectiveStrategy& own = strategy.collective;
  std::string text = fmt::format(
      "collective: gradients {}{}, sent as {}, {} batch{} a step ({}), compared every {} steps\n",
      own.scale == GradientScale::mean ? "mean" : "sum", own.deterministic ? " deterministic" : "",
      own.wire, strategy.accumulate, strategy.accumulate == 1 ? "" : "es",
      strategy.accumulate_mean ? "mean" : "sum", own.check_every);
  for (const TableSpec& spec : plan.tables)
    if (spec.elements == 0)
      text += fmt::format("rows of {} begin with seed {}, {}\n", spec.name, spec.seed,
                          name(own.embedding));
  return text + parcels.text(plan) + plan.text();
}

/// Buckets that nothing is hidden behind are better one.
CollectiveStrategy with_buckets(CollectiveStrategy strategy, bool overlap) {
  constexpr double kAnySize = 1e9;
  if (!overlap && strategy.overlap == Overlap::automatic && strategy.bucket_mb == 0)
    strategy.bucket_mb = kAnySize;
  return strategy;
}

bool has_sharded_rows(const Plan& plan, const Strategy& strategy) {
  return strategy.collective.embedding == EmbeddingMode::sharded &&
         std::ranges::find(plan.tables, size_t{0}, &TableSpec::elements) != plan.tables.end();
}

/// What each rank would do differently.
void check_tables(const Plan& plan, EmbeddingMode embedding) {
  for (const TableSpec& spec : plan.tables) {
    check<ConfigError>(spec.entry.empty() || embedding == EmbeddingMode::sharded,
                       "collective: table '", spec.name, "' has the entry ", spec.entry,
                       ", which counts what one rank sees; expected none, or embedding_mode: "
                       "sharded");
    check<ConfigError>(spec.elements > 0 || plan.clip.empty(), "collective: clip ", plan.clip,
                       " is not there for models with tables of rows, as '", spec.name,
                       "' is; expected value(x) or none");
  }
}

class CollectiveTraining final : public InProcess {
 public:
  CollectiveTraining(const Plan& plan, const Strategy& strategy, std::shared_ptr<Group> group)
      : InProcess(plan, has_sharded_rows(plan, strategy)
                            ? ShardedRows::lookahead(strategy.accumulate)
                            : 0),
        strategy_(strategy),
        group_(std::move(group)),
        overlap_(overlaps(*group_, strategy.collective.overlap)),
        parcels_(make_parcels(plan, with_buckets(strategy.collective, overlap_))),
        sums_(*group_, parcels_, strategy_),
        rows_(*group_, plan),
        missing_(parcels_.all.size()),
        delivered_(plan.tables.size()),
        op_sums_(rank_sum_sizes(plan.worker)),
        touched_(plan.tables.size()) {
    set_rank(group_->rank(), group_->size());
    group_->set_overlap(overlap_);
    check_same_text(*group_, agreed_text(plan, strategy, parcels_));
    if (!op_sums_.empty() && group_->size() > 1) {
      group_sum_.emplace(*group_);
      set_rank_sum(&*group_sum_);
    }
    if (has_sharded_rows(plan, strategy)) {
      sharded_ = std::make_unique<ShardedRows>(*group_, plan, tables(), strategy.accumulate);
      sharded_store_ = std::make_unique<ShardedStore>(*group_, tables(), *sharded_);
      set_sharded(sharded_store_.get());
    }
    if (strategy.accumulate == 1 && sums_.share() == 1) offer_places();
  }

  void set_threads(int threads) override {
    check<ConfigError>(threads == 1, "collective: the threads of a rank share one batch, got ",
                       threads, "; give chunks");
  }

  void prepare(Batch& batch) override {
    if (sharded_ != nullptr) sharded_->prepare(batch);
  }

  void fetch(Batch& batch, Purpose purpose) override {
    if (purpose == Purpose::training) begin_batch();
    InProcess::fetch(batch, purpose);
    if (purpose == Purpose::inference) return;
    if (sharded_ == nullptr) rows_.add_keys(batch);
    if (ends_step()) tell_rows();
  }

  void deliver(Batch& batch, const Edge& edge, const Tensor& value) override {
    if (edge.kind == VarKind::state) return WorkerStates::deliver(batch, edge, value);
    check<Error>(!delivered_[edge.target], "the gradient of '", plan().tables[edge.target].name,
                 "' was delivered twice");
    delivered_[edge.target] = true;
    if (edge.kind == VarKind::rows && sharded_ != nullptr)
      sharded_->put(edge.target, value.as<float>(), sums_.whole_share());
    else if (edge.kind == VarKind::rows)
      rows_.put(edge.target, value.as<float>(), sums_.whole_share());
    else
      sums_.put(edge.target, value.as<float>(), batches_ == 0);
    --missing_[parcels_.of[edge.target]];
    if (ends_step() && overlap_) send_ready(RankSums::When::later);
  }

  void commit(Batch& batch) override {
    const FlushDenormals flush;
    for (size_t i = 0; i < delivered_.size(); ++i)
      check<Error>(delivered_[i], "no gradient was delivered for '", plan().tables[i].name, "'");
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

  TableStore& store() override {
    return sharded_store_ != nullptr ? *sharded_store_ : InProcess::store();
  }

  std::vector<std::string> notes() override {
    if (joined_ == 0) return {};
    return {fmt::format("rank {} had no batch in the last {} steps of the pass", group_->rank(),
                        joined_)};
  }

 protected:
  void fetch_rows(Batch& batch, Purpose purpose) override {
    if (sharded_ == nullptr) return InProcess::fetch_rows(batch, purpose);
    if (purpose == Purpose::inference) return sharded_store_->infer(batch);
    sharded_->fetch(batch);
  }

 private:
  /// Backward writes gradients to where they are summed.
  void offer_places() {
    std::vector<Tensor> places(plan().tables.size());
    for (size_t i = 0; i < places.size(); ++i)
      if (tables().dense(i) != nullptr && parcels_.placed[i])
        places[i] = Tensor::wrap(sums_.place(i).data(), tables().parameter(i).shape(), DType::f32);
    set_places(std::move(places));
  }

  bool ends_step() const { return batches_ + 1 == strategy_.accumulate; }

  void begin_batch() {
    if (batches_ == 0) rows_.clear();
    if (batches_ == 0 && sharded_ != nullptr) sharded_->begin_step();
    delivered_.assign(delivered_.size(), false);
    for (size_t i = 0; i < missing_.size(); ++i)
      missing_[i] = parcels_.all[i].rows ? 1 : parcels_.all[i].members.size();
    sent_ = 0;
    keys_are_sent_ = !rows_.any();
  }

  void tell_rows() {
    if (rows_.any() && sharded_ == nullptr) rows_.tell();
  }

  void send_keys() {
    if (sharded_ != nullptr)
      sharded_->send_next_keys();
    else
      rows_.send_keys();
  }

  void send_rows(size_t table) {
    if (sharded_ != nullptr)
      sharded_->send(table);
    else
      rows_.send(table);
  }

  /// In the same order on every rank, whatever the order of deliveries.
  void send_ready(RankSums::When last) {
    if (!std::exchange(keys_are_sent_, true)) send_keys();
    // The last one is left for commit, which has nothing else to do.
    const size_t end = parcels_.all.size() - (last == RankSums::When::later ? 1 : 0);
    for (; sent_ < end && missing_[sent_] == 0; ++sent_) {
      const Parcel& parcel = parcels_.all[sent_];
      const bool now = sent_ + 1 == parcels_.all.size();
      if (parcel.rows)
        send_rows(*parcel.rows);
      else
        sums_.sum(sent_, now ? RankSums::When::now : RankSums::When::later);
    }
  }

  /// All that this rank has for the step is there. False: no rank had anything.
  bool end_step() {
    send_ready(RankSums::When::now);
    batches_ = 0;
    const int active = sums_.finish();
    if (active > 0 && sharded_ != nullptr) sharded_->settle(active);
    if (active > 0) apply(sums_.correction(active));
    return active > 0;
  }

  void apply(float correction) {
    const uint64_t step = ++tables().step;
    grads_.resize(plan().tables.size());
    for (size_t i = 0; i < grads_.size(); ++i) {
      const bool dense = tables().dense(i) != nullptr;
      const RankRows::Rows rows = dense                 ? RankRows::Rows{}
                                  : sharded_ != nullptr ? sharded_->take(i)
                                                        : rows_.take(i);
      const std::span<float> grad = dense ? sums_.place(i) : rows.grads;
      if (correction != 1) multiply(grad, correction);
      grads_[i] = grad;
      if (dense) continue;
      tables().sparse(i)->push(rows.keys, rows.grads, step);
      if (!compared_rows().empty()) touched_[i].add(rows.keys);
    }
    clip_.apply(grads_);
    for (size_t i = 0; i < grads_.size(); ++i)
      if (tables().dense(i) != nullptr) tables().dense(i)->push_all(grads_[i], step);
    const uint64_t every = strategy_.collective.check_every;
    if (every > 0 && step % every == 0)
      check_same_values(*group_, plan(), tables(), compared_rows(), Compared::recent);
  }

  /// None where each rank has rows of its own.
  std::span<TouchedRows> compared_rows() {
    if (sharded_ != nullptr || strategy_.collective.check_every == 0) return {};
    return touched_;
  }

  void begin_pass() {
    joined_ = pass_batches_ = 0;
    if (sharded_ != nullptr) sharded_->begin_pass();
    const bool rows = std::exchange(seen_loads_, tables().loads()) != tables().loads();
    take_from_first(*group_, plan(), tables(), rows && sharded_ == nullptr);
  }

  /// This rank has no batch any more: it takes part in the steps of those that have, without a
  /// gradient, until nobody has one.
  void join_the_others() {
    const FlushDenormals flush;
    for (bool more = true; more;) {
      const bool rest = batches_ > 0;  // batches that would have made a step with others
      if (rest) {
        const float factor = sums_.end_at(batches_);
        rows_.scale(factor);
        if (sharded_ != nullptr) sharded_->scale(factor);
      } else {
        begin_batch();
        sums_.put_nothing();
      }
      std::ranges::fill(missing_, 0);
      sent_ = 0;
      keys_are_sent_ = !rows_.any();
      // What the batches of the others ask for, as often as this rank has no batch.
      for (int i = batches_; i < strategy_.accumulate; ++i) {
        if (sharded_ != nullptr) sharded_->fetch_nothing();
        if (i + 1 == strategy_.accumulate) tell_rows();
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
  const std::shared_ptr<Group> group_;
  const bool overlap_;
  const Parcels parcels_;
  RankSums sums_;
  RankRows rows_;
  std::unique_ptr<ShardedRows> sharded_;  // instead of rows_; null: every rank has all rows
  std::unique_ptr<ShardedStore> sharded_store_;
  NormClip clip_{plan().clip};
  int batches_ = 0;              // of the step that is being made
  std::vector<size_t> missing_;  // by parcel: gradients
  std::vector<bool> delivered_;  // by table
  size_t sent_ = 0;              // parcels of this step
  bool keys_are_sent_ = false;
  uint64_t joined_ = 0, pass_batches_ = 0;  // of the pass: steps, batches of this rank
  const std::vector<size_t> op_sums_;       // that the ops of a batch make over all ranks
  std::optional<GroupSum> group_sum_;
  std::vector<TouchedRows> touched_;  // by table
  uint64_t seen_loads_ = 0;
  std::vector<std::span<const float>> grads_;
};

}  // namespace

std::unique_ptr<Communicator> collective(const Plan& plan, const Strategy& strategy,
                                         const Wires& wires) {
  check<ConfigError>(wires.group != nullptr,
                     "collective: no ranks to train with; fleetrun --nproc_per_node starts them");
  check<ConfigError>(strategy.accumulate > 0, "accumulate must be positive, got ",
                     strategy.accumulate);
  check<ConfigError>(strategy.threads == 1,
                     "collective: the threads of a rank share one batch; give chunks");
  check_tables(plan, strategy.collective.embedding);
  return std::make_unique<CollectiveTraining>(plan, strategy, wires.group);
}

}  // namespace argosy::communicators

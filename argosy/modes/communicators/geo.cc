// geo: every worker trains on its own tables, with its own optimizer. Every geo_step batches it
// sends the differences it has made to parameters and rows to the servers, which add them up, and
// gets back what the others have done. A row that is older than that is refreshed when a batch
// needs it. See docs/decisions/0008-geo.md.
//
// Invariants, for each weight w of this worker and its last known value on the servers:
//   1. w - known is what this worker has changed and not sent. Differences are added to known when
//      they are taken; what comes back changes w and known by the same amount.
//   2. A round begins when differences are taken. The keys of a batch are in `dirty_` of the
//      round in which it is committed, so that no difference is left behind.
//   3. At most one exchange of differences is in progress. Threads wait for servers without
//      mutex_, and what comes back is added to w while no gradient is being applied.
#include <algorithm>
#include <array>
#include <cstring>
#include <shared_mutex>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/modes/in_process.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/remote.h"

namespace argosy::communicators {
namespace {

using Round = uint32_t;  // 0: none yet

/// The rows of one key set as the servers last gave them, with the round of that, and the last
/// round in which a batch of this worker had the key.
class Known {
 public:
  explicit Known(size_t floats) : floats_(floats), rows_(floats + kRounds, arena_) {}

  /// Marks keys as dirty in this round. Those whose rows are older than this round go to `stale`;
  /// those that are up to date and were not dirty yet are appended to `dirty`.
  void mark_dirty(std::span<const Key> keys, Round round, std::vector<Key>& stale,
                  std::vector<Key>& dirty) {
    probe(keys);
    stale.clear();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (found_[i] == nullptr || rounds(found_[i]).renewed != round)
        stale.push_back(keys[i]);
      else if (set_dirty(found_[i], round))
        dirty.push_back(keys[i]);
    }
  }
  /// As above, for keys whose rows are known, from whichever round.
  void mark_known_dirty(std::span<const Key> keys, Round round, std::vector<Key>& dirty) {
    probe(keys);
    for (size_t i = 0; i < keys.size(); ++i)
      if (set_dirty(found_[i], round)) dirty.push_back(keys[i]);
  }
  struct Entry {
    float* row;
    enum class Was : uint8_t { missing, old, renewed } was;
  };
  /// The rows of keys, from now on up to date, and dirty in this round where `dirty` is given.
  std::span<const Entry> renew(std::span<const Key> keys, Round round, std::vector<Key>* dirty) {
    probe(keys);
    entries_.clear();
    for (size_t i = 0; i < keys.size(); ++i) {
      Entry entry{found_[i], Entry::Was::old};
      if (entry.row == nullptr) {
        entry = {rows_.insert(keys[i], probes_[i].hash), Entry::Was::missing};
        set_rounds(entry.row, {});
      } else if (rounds(entry.row).renewed == round) {
        entry.was = Entry::Was::renewed;
      }
      set_rounds(entry.row, {.renewed = round, .dirty = rounds(entry.row).dirty});
      if (dirty != nullptr && set_dirty(entry.row, round)) dirty->push_back(keys[i]);
      entries_.push_back(entry);
    }
    return entries_;
  }
  /// The rows of keys that have some.
  std::span<float* const> find(std::span<const Key> keys) {
    probe(keys);
    return found_;
  }

 private:
  struct Rounds {
    Round renewed, dirty;
  };
  static constexpr size_t kRounds = sizeof(Rounds) / sizeof(float);  // after a row's floats

  Rounds rounds(const float* row) const {
    Rounds rounds;
    std::memcpy(&rounds, row + floats_, sizeof rounds);
    return rounds;
  }
  void set_rounds(float* row, const Rounds& rounds) const {
    std::memcpy(row + floats_, &rounds, sizeof rounds);
  }
  /// Whether it had not been dirty in this round.
  bool set_dirty(float* row, Round round) const {
    Rounds own = rounds(row);
    if (std::exchange(own.dirty, round) == round) return false;
    set_rounds(row, own);
    return true;
  }
  void probe(std::span<const Key> keys) {
    probes_.resize(keys.size());
    found_.resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i)
      probes_[i] = {ps::RowStore::hash(keys[i]), static_cast<uint32_t>(i)};
    rows_.find_all(probes_, keys, floats_ + kRounds, found_);
  }

  size_t floats_;
  ps::Arena arena_;
  ps::RowStore rows_;  // the floats of all tables, then the bytes of Rounds
  std::vector<ps::Probe> probes_;
  std::vector<float*> found_;
  std::vector<Entry> entries_;
};

class Geo final : public Communicator {
 public:
  Geo(const Plan& plan, const Strategy& strategy, const Wires& wires)
      : Communicator(2, wires.replays),
        plan_(plan),
        geo_step_(strategy.geo_step),
        client_(wires.servers),
        local_(train_in_process(plan, strategy, wires.home)),
        tables_(local_->tables()),
        store_(plan, tables_.states(), *client_),
        share_(strategy.geo_mean ? 1.0F / static_cast<float>(client_->options().workers) : 1.0F) {
    const size_t sets = client_->placement().key_set_count();
    std::vector<size_t> floats(sets);
    for (ps::Parameter& parameter : tables_.parameters()) {
      const auto weights = parameter.weights();
      known_weights_.emplace_back(weights.begin(), weights.end());
    }
    for (size_t i = 0; i < plan.tables.size(); ++i) {
      places_.push_back({plan.key_sets[i], floats[plan.key_sets[i]]});
      floats[plan.key_sets[i]] += plan.tables[i].dim;
    }
    for (const size_t n : floats) known_.push_back(std::make_unique<Known>(n));
    dirty_.resize(sets);
  }

  std::unique_ptr<Lane> make_lane() override {
    return std::make_unique<LaneOf<Geo, Refresh>>(*this, local_->make_lane());
  }
  void set_threads(int threads) override { local_->set_threads(threads); }
  TableStore& store() override { return store_; }
  std::vector<std::string> notes() override { return {}; }

  /// A batch's lane of the local tables, and the rows that were pulled for it.
  struct Refresh {
    std::unique_ptr<Lane> local;
    bool prepared = false;
    Round round = 0;                            // when they were asked for
    std::vector<std::vector<Key>> keys = {};    // by key set
    std::vector<std::vector<float>> rows = {};  // by table
    std::shared_ptr<Arrival> arrival = {};      // null: no row was stale
    std::vector<Tensor> weights = {};           // by parameter: the servers', for inference
  };

  /// Sends for the rows that are not up to date.
  void prepare(Refresh& own, Batch& batch) {
    const Lock lock(mutex_);
    ask(own, batch);
    own.prepared = true;
  }

  void fetch(Refresh& own, Batch& batch, ps::Purpose purpose) {
    if (purpose == ps::Purpose::inference) return infer(own, batch);
    if (!own.prepared) prepare(own, batch);
    while (!bring_rows(own, batch)) {
    }
    own.local->fetch(batch, purpose);
  }

  void deliver(Batch& batch, const Edge& edge, const Tensor& value) {
    local_->deliver(batch, edge, value);
  }

  void commit(Refresh& own, Batch& batch) {
    own.prepared = false;
    if (batch.replayed) return;
    {
      const std::shared_lock applying(write_back_);
      own.local->commit(batch);
    }
    const Lock lock(mutex_);
    trained_ = std::max(trained_, batch.trained);
    // Another thread has begun a round since the fetch: these gradients are for it to send.
    if (own.round != round_)
      for (size_t set = 0; set < known_.size(); ++set)
        known_[set]->mark_known_dirty(batch.keys[set], round_, dirty_[set]);
    if (++batches_ % geo_step_ == 0) exchange_differences();
  }

  void drain() override {
    const Lock lock(mutex_);
    changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return !exchanging_; });
    if (batches_ % geo_step_ != 0) exchange_differences();
    batches_ = 0;
  }

  void pass(Pass event) override {
    if (event == Pass::begin) {
      // Another worker may have loaded a model onto the servers.
      const Lock lock(mutex_);
      exchange_differences();
    }
    if (event == Pass::end) call_all(*client_, ps::verbs::Secure{});
    if (event != Pass::leave) return;
    drain();
    call_all(*client_, ps::verbs::Leave{});
    client_->close();
  }

 private:
  /// Where a table's row lies within the joint row of its key set.
  struct RowPlace {
    size_t set, at;  // at: where its floats begin in a row of Known
  };

  /// As the servers have them.
  void infer(Refresh& own, Batch& batch) {
    own.local->fetch(batch, ps::Purpose::inference);
    const auto exchange = std::make_shared<ps::Exchange>();
    if (!batch.keys.empty())
      exchange->lists = std::make_shared<ps::KeyLists>(client_->placement(), batch.keys);
    exchange->inference = true;
    own.weights.resize(plan_.parameters.size());
    for (size_t i = 0; i < own.weights.size(); ++i) {
      own.weights[i].renew(tables_.parameter_tensor(i).shape(), DType::f32);
      exchange->parameters.push_back(own.weights[i].as<float>());
      batch.feeds[plan_.parameters[i].name] = own.weights[i];
    }
    for (const ps::TableSpec& spec : plan_.tables)
      exchange->rows.push_back(batch.feeds[spec.name].as<float>());
    begin(*client_, exchange)->wait();
  }

  void ask(Refresh& own, const Batch& batch) REQUIRES(mutex_) {
    own.round = round_;
    own.keys.resize(known_.size());
    size_t asked = 0;
    for (size_t set = 0; set < known_.size(); ++set) {
      known_[set]->mark_dirty(batch.keys[set], round_, own.keys[set], dirty_[set]);
      asked += own.keys[set].size();
    }
    own.arrival = nullptr;
    if (asked == 0) return;
    const auto exchange = std::make_shared<ps::Exchange>();
    exchange->lists = std::make_shared<ps::KeyLists>(client_->placement(), own.keys);
    own.rows.resize(places_.size());
    for (size_t i = 0; i < places_.size(); ++i) {
      own.rows[i].resize(own.keys[places_[i].set].size() * dim(i));
      exchange->rows.emplace_back(own.rows[i]);
    }
    own.arrival = begin(*client_, exchange);
  }

  /// Takes the rows that were asked for. False: differences went out since, and others, newer ones,
  /// have been asked for.
  bool bring_rows(Refresh& own, const Batch& batch) {
    const bool asked = own.arrival != nullptr;
    if (asked) std::exchange(own.arrival, nullptr)->wait();
    const Lock lock(mutex_);
    if (own.round != round_) {
      ask(own, batch);
      return false;
    }
    if (asked) bring_up_to_date(own.keys, own.rows, &dirty_);
    return true;
  }

  /// w += server - known; known = server. A row that was not known becomes the server's. One that
  /// is of this round already stays: other threads may have asked for it later. Keys that had not
  /// been dirty in this round are added to `dirty`, if given.
  void bring_up_to_date(const std::vector<std::vector<Key>>& keys,
                        const std::vector<std::vector<float>>& rows,
                        std::vector<std::vector<Key>>* dirty = nullptr) REQUIRES(mutex_) {
    std::vector<std::span<const Known::Entry>> entries;
    for (size_t set = 0; set < keys.size(); ++set)
      entries.push_back(
          known_[set]->renew(keys[set], round_, dirty == nullptr ? nullptr : &(*dirty)[set]));
    const std::unique_lock alone(write_back_);
    for (size_t i = 0; i < places_.size(); ++i) {
      const RowPlace& place = places_[i];
      ps::RowTable& table = tables_.table(i);
      const std::vector<Key>& wanted = keys[place.set];
      weights_.resize(wanted.size() * dim(i));
      read_rows(table, wanted, ps::Purpose::inference, weights_, ticket_);
      for (size_t row = 0; row < wanted.size(); ++row) {
        const Known::Entry& entry = entries[place.set][row];
        if (entry.was == Known::Entry::Was::renewed) continue;
        float* const known = entry.row + place.at;
        float* const own = weights_.data() + row * dim(i);
        const float* const server = rows[i].data() + row * dim(i);
        for (size_t j = 0; j < dim(i); ++j) {
          own[j] =
              entry.was == Known::Entry::Was::missing ? server[j] : own[j] + (server[j] - known[j]);
          known[j] = server[j];
        }
      }
      table.assign(wanted, weights_);
    }
  }

  /// Differences to push, and the servers' values pulled with them.
  struct Differences {
    std::vector<std::vector<Key>> keys;                      // by key set
    std::vector<std::vector<float>> rows, fresh;             // by table
    std::vector<std::vector<float>> weights, fresh_weights;  // by parameter
  };

  /// Pushes this worker's differences and merges the servers' new values.
  void exchange_differences() REQUIRES(mutex_) {
    changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return !exchanging_; });
    exchanging_ = true;
    std::exception_ptr failure;
    try {
      Differences differences = take_differences();
      const auto arrival = send(differences);  // in front of what others ask for from now on
      ++round_;
      {
        const Unlocked unlocked(mutex_);
        arrival->wait();
      }
      take_back(differences);
    } catch (...) {
      failure = std::current_exception();
    }
    exchanging_ = false;
    changed_.notify_all();
    if (failure != nullptr) std::rethrow_exception(failure);
  }

  /// The share of what this worker has changed that goes out now; it counts as known.
  Differences take_differences() REQUIRES(mutex_) {
    Differences all;
    for (size_t i = 0; i < places_.size(); ++i) all.rows.push_back(row_differences(i));
    for (size_t i = 0; i < known_weights_.size(); ++i) all.weights.push_back(differences_of(i));
    all.keys.resize(dirty_.size());
    all.keys.swap(dirty_);
    return all;
  }

  std::shared_ptr<Arrival> send(Differences& all) REQUIRES(mutex_) {
    const auto exchange = std::make_shared<ps::Exchange>();
    exchange->dense.assign(all.weights.begin(), all.weights.end());
    exchange->ends_step = true;
    exchange->trained = trained_;
    for (const auto& known : known_weights_) all.fresh_weights.emplace_back(known.size());
    exchange->parameters.assign(all.fresh_weights.begin(), all.fresh_weights.end());
    if (!places_.empty()) {
      exchange->pushes.push_back(
          {.lists = std::make_shared<ps::KeyLists>(client_->placement(), all.keys),
           .grads = {all.rows.begin(), all.rows.end()}});
      exchange->lists = std::make_shared<ps::KeyLists>(client_->placement(), all.keys);
      exchange->inference = true;  // the rows exist, and no list need be kept
      for (const auto& rows : all.rows) all.fresh.emplace_back(rows.size());
      exchange->rows.assign(all.fresh.begin(), all.fresh.end());
    }
    return begin(*client_, exchange);
  }

  void take_back(const Differences& all) REQUIRES(mutex_) {
    {
      const std::unique_lock alone(write_back_);
      for (size_t i = 0; i < known_weights_.size(); ++i) {
        const auto weights = tables_.parameter(i).weights();
        std::vector<float> next(weights.begin(), weights.end());
        for (size_t j = 0; j < next.size(); ++j)
          next[j] += all.fresh_weights[i][j] - known_weights_[i][j];
        tables_.parameter(i).assign(next);
        known_weights_[i] = all.fresh_weights[i];
      }
    }
    bring_up_to_date(all.keys, all.fresh);
  }

  std::vector<float> differences_of(size_t parameter) REQUIRES(mutex_) {
    std::vector<float>& known = known_weights_[parameter];
    std::vector<float> delta(known.size());
    tables_.parameter(parameter).read(delta);
    for (size_t i = 0; i < delta.size(); ++i) {
      delta[i] = (delta[i] - known[i]) * share_;
      known[i] += delta[i];
    }
    return delta;
  }

  std::vector<float> row_differences(size_t table) REQUIRES(mutex_) {
    const RowPlace& place = places_[table];
    const std::vector<Key>& keys = dirty_[place.set];
    std::vector<float> delta(keys.size() * dim(table));
    read_rows(tables_.table(table), keys, ps::Purpose::inference, delta, ticket_);
    const std::span<float* const> rows = known_[place.set]->find(keys);
    for (size_t row = 0; row < keys.size(); ++row) {
      float* const known = rows[row] + place.at;
      float* const own = delta.data() + row * dim(table);
      for (size_t j = 0; j < dim(table); ++j) {
        own[j] = (own[j] - known[j]) * share_;
        known[j] += own[j];
      }
    }
    return delta;
  }

  size_t dim(size_t table) const { return plan_.tables[table].dim; }

  const Plan& plan_;
  const int64_t geo_step_;
  const std::shared_ptr<ps::Client> client_;
  const std::unique_ptr<InProcess> local_;
  LocalStore& tables_;
  RemoteStore store_;  // the servers' values, with the states of the local tables' model
  const float share_;
  std::vector<RowPlace> places_;  // by table
  std::shared_mutex write_back_;  // shared: gradients are applied; alone: what came back is added
  Mutex mutex_;                   // taken before write_back_
  CondVar changed_;
  bool exchanging_ GUARDED_BY(mutex_) = false;  // differences
  // By parameter, as the servers last gave them:
  std::vector<std::vector<float>> known_weights_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Known>> known_ GUARDED_BY(mutex_);  // by key set
  std::vector<std::vector<Key>> dirty_ GUARDED_BY(mutex_);        // by key set, in this round
  Round round_ GUARDED_BY(mutex_) = 1;
  int64_t batches_ GUARDED_BY(mutex_) = 0;
  Trained trained_ GUARDED_BY(mutex_);
  std::vector<float> weights_ GUARDED_BY(mutex_);
  ps::Ticket ticket_ GUARDED_BY(mutex_);
};

std::unique_ptr<Communicator> make(const Plan& plan, const Strategy& strategy, const Wires& wires) {
  check<ConfigError>(strategy.geo_step > 0, "geo_step must be positive, got ", strategy.geo_step);
  return std::make_unique<Geo>(plan, strategy, wires);
}

}  // namespace

Mode geo() {
  return {.make = make,
          .pushes = Mode::Pushes::differences,
          .links = kSendInBackground,
          .batches_per_push = [](const Strategy& s) -> int64_t { return s.geo_step; },
          .empty_pushes = 1,  // asks how things are
          .between_pushes = "rows that a batch needs and this worker has not seen since then",
          .lost_with_worker = "what it had changed and not sent"};
}

}  // namespace argosy::communicators

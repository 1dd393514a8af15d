// geo: every worker trains on tables of its own, with its own optimizer. Every geo_step batches
// the differences it has made to parameters and rows go to the servers, which add them up, and what
// the others have done comes back. A row that has not been looked at since then is brought up to
// date when a batch needs it. See docs/decisions/0008-geo.md.
#include <algorithm>
#include <array>

#include "argosy/base/error.h"
#include "argosy/fleet/local_store.h"
#include "argosy/fleet/remote.h"

namespace argosy::communicators {

std::unique_ptr<Communicator> local(const Plan& plan, const Strategy& strategy, const Wires&);

namespace {

/// Of one key set: the rows of its tables as the servers last gave them, the round in which that
/// was, and the round in which a batch of this worker last had the key.
class Known {
 public:
  explicit Known(size_t floats) : floats_(floats), rows_(floats + 2, arena_) {}

  /// Marks the keys as touched in this round. Those whose rows are not of this round are `stale`,
  /// those that are up to date and had not been touched yet are added to `touched`.
  void touch(std::span<const Key> keys, float round, std::vector<Key>& stale,
             std::vector<Key>& touched) {
    probe(keys);
    stale.clear();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (found_[i] == nullptr || found_[i][floats_] != round)
        stale.push_back(keys[i]);
      else if (std::exchange(found_[i][floats_ + 1], round) != round)
        touched.push_back(keys[i]);
    }
  }
  struct Entry {
    float* row;
    bool made;  // just now
  };
  /// The rows of keys, from now on up to date, and touched in this round where `touched` is given.
  std::span<const Entry> renew(std::span<const Key> keys, float round, std::vector<Key>* touched) {
    probe(keys);
    entries_.clear();
    for (size_t i = 0; i < keys.size(); ++i) {
      float* row = found_[i];
      const bool made = row == nullptr;
      if (made) {
        row = rows_.insert(keys[i], probes_[i].hash);
        row[floats_ + 1] = -1;
      }
      row[floats_] = round;
      if (touched != nullptr && std::exchange(row[floats_ + 1], round) != round)
        touched->push_back(keys[i]);
      entries_.push_back({row, made});
    }
    return entries_;
  }
  /// The rows of keys that have some.
  std::span<float* const> find(std::span<const Key> keys) {
    probe(keys);
    return found_;
  }

 private:
  void probe(std::span<const Key> keys) {
    probes_.resize(keys.size());
    found_.resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i)
      probes_[i] = {RowStore::hash(keys[i]), static_cast<uint32_t>(i)};
    rows_.find_all(probes_, keys, floats_ + 2, found_);
  }

  size_t floats_;
  Arena arena_;
  RowStore rows_;  // the floats of all tables, then the two rounds
  std::vector<Probe> probes_;
  std::vector<float*> found_;
  std::vector<Entry> entries_;
};

class Geo final : public Remote {
 public:
  Geo(const Plan& plan, const Strategy& strategy, const Wires& wires)
      : Remote(2, plan, strategy, wires),
        local_(local(plan, strategy, wires)),
        tables_(static_cast<LocalStore&>(local_->store())),
        store_(plan, tables_.states(), client()),
        share_(strategy.geo_mean ? 1.0F / static_cast<float>(client().options().workers) : 1.0F) {
    const size_t sets = client().placement().key_set_count();
    std::vector<size_t> floats(sets);
    for (size_t i = 0; i < plan.tables.size(); ++i) {
      if (plan.tables[i].elements > 0) {
        const auto weights = tables_.dense(i)->weights();
        dense_.push_back({i, {weights.begin(), weights.end()}});
        continue;
      }
      sparse_.push_back({i, plan.key_sets[i], floats[plan.key_sets[i]]});
      floats[plan.key_sets[i]] += plan.tables[i].dim;
    }
    for (const size_t n : floats) known_.push_back(std::make_unique<Known>(n));
    touched_.resize(sets);
  }

  /// Sends for the rows that are not up to date.
  void prepare(Batch& batch) override {
    const std::scoped_lock lock(mutex_);
    Refresh& refresh = refresh_of(batch);
    refresh.round = round_;
    ask(batch, refresh);
  }

  void fetch(Batch& batch, Purpose purpose) override {
    if (purpose == Purpose::inference) {
      batch.carried.reset();
      return Remote::fetch(batch, purpose);
    }
    {
      std::unique_lock lock(mutex_);
      if (batch.carried == nullptr || dynamic_cast<Refresh*>(batch.carried.get()) == nullptr ||
          refresh_of(batch).local == nullptr) {
        lock.unlock();
        prepare(batch);
        lock.lock();
      }
      Refresh& refresh = refresh_of(batch);
      take(refresh);
      if (refresh.round != round_) {  // differences went out since: what was asked for is old
        refresh.round = round_;
        ask(batch, refresh);
        take(refresh);
      }
    }
    with_local(batch, [&] { local_->fetch(batch, purpose); });
  }

  void deliver(Batch& batch, const Edge& edge, const Tensor& value) override {
    local_->deliver(batch, edge, value);
  }

  void commit(Batch& batch) override {
    with_local(batch, [&] { local_->commit(batch); });
    const std::scoped_lock lock(mutex_);
    if (++batches_ % strategy().geo_step == 0) exchange_differences();
  }

  void drain() override {
    const std::scoped_lock lock(mutex_);
    if (batches_ % strategy().geo_step != 0) exchange_differences();
    batches_ = 0;
  }

  TableStore& store() override { return store_; }

  void pass(Pass event) override {
    if (event == Pass::begin) {
      // Another worker may have loaded a model onto the servers.
      const std::scoped_lock lock(mutex_);
      exchange_differences();
    }
    Remote::pass(event);
  }

 private:
  /// What a batch carries: rows that have been asked for, and what the local tables keep with it.
  struct Refresh final : Carried {
    float round = -1;
    std::vector<std::vector<Key>> keys;    // by key set: those asked for
    std::vector<std::vector<float>> rows;  // by sparse table
    std::shared_ptr<Arrival> arrival;      // null: nothing was asked for
    std::unique_ptr<Carried> local;
  };
  struct Dense {
    size_t table;
    std::vector<float> known;  // as the servers last gave it
  };
  struct Sparse {
    size_t table, set, at;  // at: where its floats begin in a row of Known
  };

  static Refresh& refresh_of(Batch& batch) {
    if (dynamic_cast<Refresh*>(batch.carried.get()) == nullptr)
      batch.carried = std::make_unique<Refresh>();
    return static_cast<Refresh&>(*batch.carried);
  }

  /// Lends the batch what the local communicator keeps with it.
  template <class Call>
  void with_local(Batch& batch, const Call& call) {
    std::unique_ptr<Carried> own = std::move(batch.carried);
    auto& refresh = static_cast<Refresh&>(*own);
    batch.carried = std::move(refresh.local);
    call();
    refresh.local = std::move(batch.carried);
    batch.carried = std::move(own);
  }

  void ask(const Batch& batch, Refresh& refresh) {
    refresh.keys.resize(known_.size());
    size_t asked = 0;
    for (size_t set = 0; set < known_.size(); ++set) {
      known_[set]->touch(batch.keys[set], round_, refresh.keys[set], touched_[set]);
      asked += refresh.keys[set].size();
    }
    refresh.arrival = nullptr;
    if (asked == 0) return;
    const auto exchange = std::make_shared<Exchange>();
    exchange->lists = std::make_shared<KeyLists>(client().placement(), refresh.keys);
    refresh.rows.resize(sparse_.size());
    for (size_t i = 0; i < sparse_.size(); ++i) {
      refresh.rows[i].resize(refresh.keys[sparse_[i].set].size() * dim(i));
      exchange->rows.emplace_back(refresh.rows[i]);
    }
    refresh.arrival = begin(client(), exchange);
  }

  void take(Refresh& refresh) {
    if (refresh.arrival == nullptr) return;
    std::exchange(refresh.arrival, nullptr)->wait();
    if (refresh.round != round_) return;
    bring_up_to_date(refresh.keys, refresh.rows, &touched_);
  }

  /// w += server - known; known = server. A row that was not known becomes the server's. Keys that
  /// had not been touched in this round are added to `touched`, if given.
  void bring_up_to_date(const std::vector<std::vector<Key>>& keys,
                        const std::vector<std::vector<float>>& rows,
                        std::vector<std::vector<Key>>* touched = nullptr) {
    std::vector<std::span<const Known::Entry>> entries;
    for (size_t set = 0; set < keys.size(); ++set)
      entries.push_back(
          known_[set]->renew(keys[set], round_, touched == nullptr ? nullptr : &(*touched)[set]));
    for (size_t i = 0; i < sparse_.size(); ++i) {
      const Sparse& sparse = sparse_[i];
      SparseTable& table = *tables_.sparse(sparse.table);
      const std::vector<Key>& wanted = keys[sparse.set];
      weights_.resize(wanted.size() * dim(i));
      table.pull_existing(wanted, weights_);
      for (size_t row = 0; row < wanted.size(); ++row) {
        const Known::Entry entry = entries[sparse.set][row];
        float* const known = entry.row + sparse.at;
        float* const own = weights_.data() + row * dim(i);
        const float* const server = rows[i].data() + row * dim(i);
        for (size_t j = 0; j < dim(i); ++j) {
          own[j] = entry.made ? server[j] : own[j] + (server[j] - known[j]);
          known[j] = server[j];
        }
      }
      table.assign(wanted, weights_);
    }
  }

  /// Sends what this worker has changed and takes what all have made of it.
  void exchange_differences() {
    const auto exchange = std::make_shared<Exchange>();
    const auto lists = std::make_shared<KeyLists>(client().placement(), touched_);
    std::vector<std::vector<float>> deltas, dense_deltas, fresh(sparse_.size());
    for (size_t i = 0; i < sparse_.size(); ++i) deltas.push_back(row_differences(i));
    for (Dense& dense : dense_) dense_deltas.push_back(differences(dense));
    Exchange::Push push{.lists = lists, .grads = {deltas.begin(), deltas.end()}};
    if (!sparse_.empty()) exchange->pushes.push_back(std::move(push));
    exchange->dense.assign(dense_deltas.begin(), dense_deltas.end());
    exchange->ends_step = true;
    std::vector<std::vector<float>> parameters;
    for (const Dense& dense : dense_) parameters.emplace_back(dense.known.size());
    exchange->parameters.assign(parameters.begin(), parameters.end());
    if (!sparse_.empty()) {
      exchange->lists = std::make_shared<KeyLists>(client().placement(), touched_);
      exchange->inference = true;  // the rows are there, and no list need be kept
      for (size_t i = 0; i < sparse_.size(); ++i) {
        fresh[i].resize(deltas[i].size());
        exchange->rows.emplace_back(fresh[i]);
      }
    }
    begin(client(), exchange)->wait();
    note(*exchange);
    round_ = round_ < kLastRound ? round_ + 1 : 0;
    for (size_t i = 0; i < dense_.size(); ++i) {
      const auto weights = tables_.dense(dense_[i].table)->weights();
      std::vector<float> next(weights.begin(), weights.end());
      for (size_t j = 0; j < next.size(); ++j) next[j] += parameters[i][j] - dense_[i].known[j];
      tables_.dense(dense_[i].table)->assign_all(next);
      dense_[i].known = std::move(parameters[i]);
    }
    bring_up_to_date(touched_, fresh);
    for (std::vector<Key>& keys : touched_) keys.clear();
  }

  /// The share of what this worker has changed that goes out now; it counts as known.
  std::vector<float> differences(Dense& dense) {
    std::vector<float> delta(dense.known.size());
    tables_.dense(dense.table)->pull_all(delta);
    for (size_t i = 0; i < delta.size(); ++i) {
      delta[i] = (delta[i] - dense.known[i]) * share_;
      dense.known[i] += delta[i];
    }
    return delta;
  }

  std::vector<float> row_differences(size_t number) {
    const Sparse& sparse = sparse_[number];
    const std::vector<Key>& keys = touched_[sparse.set];
    std::vector<float> delta(keys.size() * dim(number));
    tables_.sparse(sparse.table)->pull_existing(keys, delta);
    const std::span<float* const> rows = known_[sparse.set]->find(keys);
    for (size_t row = 0; row < keys.size(); ++row) {
      float* const known = rows[row] + sparse.at;
      float* const own = delta.data() + row * dim(number);
      for (size_t j = 0; j < dim(number); ++j) {
        own[j] = (own[j] - known[j]) * share_;
        known[j] += own[j];
      }
    }
    return delta;
  }

  size_t dim(size_t number) const { return plan().tables[sparse_[number].table].dim; }

  static constexpr float kLastRound = 1 << 23;  // floats count exactly up to here
  std::unique_ptr<Communicator> local_;
  LocalStore& tables_;
  RemoteStore store_;  // what the servers have, with the states of the local tables' model
  const float share_;
  std::vector<Dense> dense_;
  std::vector<Sparse> sparse_;
  std::mutex mutex_;                           // guards what follows
  std::vector<std::unique_ptr<Known>> known_;  // by key set
  std::vector<std::vector<Key>> touched_;      // by key set, since the last exchange
  float round_ = 0;
  int64_t batches_ = 0;
  std::vector<float> weights_;
};

}  // namespace

std::unique_ptr<Communicator> geo(const Plan& plan, const Strategy& strategy, const Wires& wires) {
  check<ConfigError>(strategy.geo_step > 0, "geo_step must be positive, got ", strategy.geo_step);
  return std::make_unique<Geo>(plan, strategy, wires);
}

}  // namespace argosy::communicators

#include "argosy/ps/sparse_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"

namespace argosy {
namespace {

constexpr size_t kChunk = 256;    // rows resolved together, then used while they are in the cache
constexpr size_t kShardStep = 5;  // between the first shards of two threads
constexpr size_t kMaxShards = size_t{1} << RowStore::kFreeHashBits;

TableSpec checked(TableSpec spec) {
  check<ConfigError>(spec.dim > 0, "table '", spec.name, "': dim is 0, expected at least 1");
  check<ConfigError>(spec.elements == 0, "table '", spec.name, "': elements is ", spec.elements,
                     ", expected 0 for a sparse table");
  check<ConfigError>(std::has_single_bit(spec.shards) && spec.shards <= kMaxShards, "table '",
                     spec.name, "': shards is ", spec.shards, ", expected a power of two up to ",
                     kMaxShards);
  return spec;
}

/// std::copy_n for the few floats of a row, without a call of memcpy.
void copy_floats(const float* from, size_t n, float* to) {
  constexpr size_t kFour = 4;
  if (n < kFour) {
    for (size_t i = 0; i < n; ++i) to[i] = from[i];
    return;
  }
  for (size_t i = 0; i + kFour < n; i += kFour) std::memcpy(to + i, from + i, sizeof(float[kFour]));
  std::memcpy(to + n - kFour, from + n - kFour,
              sizeof(float[kFour]));  // may overlap the one before
}

}  // namespace

/// What one call needs; kept for the next.
struct SparseTable::Scratch {
  size_t first_shard = 0;  // threads start at different shards, so as not to queue at the same lock
  KeyBatch batch;
  std::vector<float> adjusted;  // gradients of a chunk, clipped and decayed
};

class SparseTable::Borrowed {
 public:
  explicit Borrowed(const SparseTable& table) : table_(table) {
    const Lock lock(table_.scratch_mutex_);
    if (table_.scratch_.empty()) {
      table_.scratch_.reserve(table_.scratches_made_ + 1);
      scratch_ = std::make_unique<Scratch>();
      scratch_->first_shard = table_.scratches_made_++ * kShardStep;
      return;
    }
    scratch_ = std::move(table_.scratch_.back());
    table_.scratch_.pop_back();
  }
  ~Borrowed() {
    const Lock lock(table_.scratch_mutex_);
    table_.scratch_.push_back(std::move(scratch_));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Scratch* operator->() { return scratch_.get(); }

 private:
  const SparseTable& table_;
  std::unique_ptr<Scratch> scratch_;
};

SparseTable::Stores::Stores(const SparseTable& table, std::shared_ptr<Arena> memory)
    : arena(std::move(memory)), rows(table.floats(Section::rows), *arena) {
  if (table.counting()) counted.emplace(table.floats(Section::counted), *arena);
}

SparseTable::SparseTable(TableSpec spec)
    : spec_(checked(std::move(spec))),
      rule_(make_rule(spec_.rule)),
      schedule_(spec_.learning_rate),
      policy_(spec_.regularizer, spec_.clip),
      initializer_(spec_.init),
      entry_(spec_.entry),
      row_seed_(parameter_stream(spec_.seed, spec_.name).bits(0)),
      entry_seed_(parameter_stream(spec_.seed, spec_.name).bits(1)),
      state_size_(rule_->state_size(spec_.dim)),
      scores_at_(spec_.track_unseen ? 1 : 0),
      weights_at_(scores_at_ + (scoring() ? 2 : 0)) {
  check<ConfigError>(!rule_->whole_parameter(), "rule '", spec_.rule,
                     "' needs the norm of a whole parameter: table '", spec_.name,
                     "' is sparse and has rows");
  check<ConfigError>(initializer_.size().value_or(spec_.dim) == spec_.dim, "'", spec_.init,
                     "': a row of table '", spec_.name, "' has ", spec_.dim, " elements");
  const auto arena = std::make_shared<Arena>();
  for (size_t i = 0; i < spec_.shards; ++i)
    shards_.emplace_back(std::make_unique<Stores>(*this, arena));
}

SparseTable::~SparseTable() = default;

/// Calls use(part) for every shard that has keys of the batch, under its lock.
template <class Use>
void SparseTable::each_shard(KeyBatch& batch, size_t first, const Use& use) const {
  for (size_t turn = 0; turn < shards_.size(); ++turn) {
    const size_t number = (first + turn) % shards_.size();
    const std::span<Probe> probes = batch.shard(number);
    if (probes.empty()) continue;
    Shard& shard = shards_[number];
    const Lock lock(shard.mutex);
    use(Part{number, shard.generation, *shard.stores, probes});
  }
}

/// Calls use(stores, probe, row or null) for every key, under the lock of its shard. The first
/// `floats` of each row are on their way to the cache.
template <class Use>
void SparseTable::each_row(std::span<const Key> keys, size_t floats, const Use& use) const {
  Borrowed scratch(*this);
  scratch->batch.group(keys, shards_.size());
  std::array<float*, kChunk> found;
  each_shard(scratch->batch, scratch->first_shard, [&](const Part& part) {
    for (size_t at = 0; at < part.probes.size(); at += kChunk) {
      const auto chunk = part.probes.subspan(at, std::min(kChunk, part.probes.size() - at));
      part.stores.rows.find_all(chunk, keys, floats, found);
      for (size_t i = 0; i < chunk.size(); ++i) use(part.stores, chunk[i], found[i]);
    }
  });
}

/// Makes the row if it is missing and admitted.
void SparseTable::pull_row(Stores& stores, const Probe& probe, Key key, uint32_t count, float*& row,
                           float* to) const {
  if (row == nullptr) row = row_for_pull(stores, key, probe.hash, count);
  if (row == nullptr) {
    std::fill_n(to, spec_.dim, 0.0F);
    return;
  }
  if (spec_.track_unseen) row[0] = 0;
  copy_floats(row + weights_at_, spec_.dim, to);
}

void SparseTable::pull(std::span<const Key> keys, std::span<float> rows,
                       const PullColumns& columns) {
  check_rows(keys, rows.size());
  check_column(keys, columns.counts.size(), "counts");
  each_row(keys, weights_at_ + spec_.dim, [&](Stores& stores, const Probe& probe, float* row) {
    const size_t i = probe.position;
    const uint32_t count = columns.counts.empty() ? 1 : columns.counts[i];
    pull_row(stores, probe, keys[i], count, row, rows.data() + i * spec_.dim);
  });
}

void SparseTable::pull(std::span<const Key> keys, std::span<float> rows, const PullColumns& columns,
                       Located& located) {
  check_rows(keys, rows.size());
  check_column(keys, columns.counts.size(), "counts");
  located.keys_.assign(keys.begin(), keys.end());
  located.batch_.group(keys, shards_.size());
  located.rows_.resize(keys.size());
  located.generation_.resize(shards_.size());
  Borrowed scratch(*this);
  each_shard(located.batch_, scratch->first_shard, [&](const Part& part) {
    located.generation_[part.number] = part.generation;
    float** const found = located.rows_.data() + located.batch_.begin(part.number);
    for (size_t at = 0; at < part.probes.size(); at += kChunk) {
      const auto chunk = part.probes.subspan(at, std::min(kChunk, part.probes.size() - at));
      part.stores.rows.find_all(chunk, keys, weights_at_ + spec_.dim, {found + at, chunk.size()});
      for (size_t j = 0; j < chunk.size(); ++j) {
        const size_t i = chunk[j].position;
        const uint32_t count = columns.counts.empty() ? 1 : columns.counts[i];
        pull_row(part.stores, chunk[j], keys[i], count, found[at + j], rows.data() + i * spec_.dim);
      }
    }
  });
}

void SparseTable::pull_existing(std::span<const Key> keys, std::span<float> rows) const {
  check_rows(keys, rows.size());
  each_row(keys, weights_at_ + spec_.dim, [&](Stores&, const Probe& probe, const float* row) {
    float* const to = rows.data() + probe.position * spec_.dim;
    if (row == nullptr)
      std::fill_n(to, spec_.dim, 0.0F);
    else
      copy_floats(row + weights_at_, spec_.dim, to);
  });
}

void SparseTable::push(std::span<const Key> keys, std::span<const float> grads, uint64_t step,
                       const PushColumns& columns) {
  check_rows(keys, grads.size());
  check_column(keys, columns.show.size(), "show");
  check_column(keys, columns.click.size(), "click");
  const Update update = update_of(step);
  if (scoring()) add_scores(keys, columns);
  Borrowed scratch(*this);
  scratch->batch.group(keys, shards_.size());
  each_shard(scratch->batch, scratch->first_shard, [&](const Part& part) {
    const auto merged = scratch->batch.merge(part.probes, grads.data(), spec_.dim);
    std::array<float*, kChunk> found;
    for (size_t at = 0; at < merged.probes.size(); at += kChunk) {
      const size_t n = std::min(kChunk, merged.probes.size() - at);
      const auto chunk = merged.probes.subspan(at, n);
      part.stores.rows.find_all(chunk, keys, floats(Section::rows), found);
      apply(part.stores, {chunk, merged.grads.subspan(at, n), {found.data(), n}}, keys, update,
            scratch->adjusted);
    }
  });
}

void SparseTable::push(Located& located, std::span<const float> grads, uint64_t step,
                       const PushColumns& columns) {
  const std::span<const Key> keys = located.keys_;
  check_rows(keys, grads.size());
  check_column(keys, columns.show.size(), "show");
  check_column(keys, columns.click.size(), "click");
  const Update update = update_of(step);
  if (scoring()) add_scores(keys, columns);
  Borrowed scratch(*this);
  each_shard(located.batch_, scratch->first_shard, [&](const Part& part) {
    const std::span<float*> rows =
        std::span(located.rows_).subspan(located.batch_.begin(part.number), part.probes.size());
    if (std::exchange(located.generation_[part.number], part.generation) != part.generation)
      part.stores.rows.find_all(part.probes, keys, floats(Section::rows), rows);
    std::array<const float*, kChunk> parts;
    for (size_t at = 0; at < part.probes.size(); at += kChunk) {
      const auto chunk = part.probes.subspan(at, std::min(kChunk, part.probes.size() - at));
      const auto found = rows.subspan(at, chunk.size());
      for (size_t i = 0; i < chunk.size(); ++i) {
        RowStore::prefetch(found[i], floats(Section::rows));
        parts[i] = grads.data() + chunk[i].position * spec_.dim;
      }
      apply(part.stores, {chunk, parts, found}, keys, update, scratch->adjusted);
    }
  });
}

Update SparseTable::update_of(uint64_t step) const {
  check<DataError>(step > 0, "table '", spec_.name, "': step 0, but the first step is 1");
  return {.lr = schedule_.rate(step), .step = step};
}

void SparseTable::apply(Stores& stores, const RowGradients& part, std::span<const Key> keys,
                        const Update& update, std::vector<float>& adjusted) const {
  std::array<RowStep, kChunk> steps;
  size_t count = 0;
  for (size_t i = 0; i < part.probes.size(); ++i) {
    float*& row = part.rows[i];
    const Probe& probe = part.probes[i];
    if (row == nullptr) row = row_for_push(stores, keys[probe.position], probe.hash);
    if (row == nullptr) continue;
    if (spec_.track_unseen) row[0] = 0;
    steps[count++] = {row + weights_at_, part.grads[i]};
  }
  if (policy_.active()) {
    adjusted.resize(kChunk * spec_.dim);
    for (size_t i = 0; i < count; ++i) {
      const auto grad = std::span(adjusted).subspan(i * spec_.dim, spec_.dim);
      std::copy_n(steps[i].grad, spec_.dim, grad.begin());
      policy_.apply({steps[i].weights, spec_.dim}, grad);
      steps[i].grad = grad.data();
    }
  }
  rule_->apply_rows(std::span(steps).first(count), spec_.dim, update);
}

void SparseTable::assign(std::span<const Key> keys, std::span<const float> rows) {
  check_rows(keys, rows.size());
  each_row(keys, weights_at_ + spec_.dim, [&](Stores& stores, const Probe& probe, float* row) {
    const Key key = keys[probe.position];
    if (row == nullptr) row = stores.rows.find(key, probe.hash);  // made for an equal key
    if (row == nullptr) row = make_row(stores, key, probe.hash);
    if (spec_.track_unseen) row[0] = 0;
    copy_floats(rows.data() + probe.position * spec_.dim, spec_.dim, row + weights_at_);
  });
}

size_t SparseTable::size() const {
  size_t rows = 0;
  for (const Shard& shard : shards_) {
    const Lock lock(shard.mutex);
    rows += shard.stores->rows.size();
  }
  return rows;
}

size_t SparseTable::shrink(uint32_t unseen) {
  check<ConfigError>(spec_.track_unseen, "table '", spec_.name,
                     "': shrink needs track_unseen, which is off");
  size_t erased = 0;
  for (Shard& shard : shards_) {
    const Lock lock(shard.mutex);
    ++shard.generation;
    erased += age(shard.stores->rows, 0, unseen);
    if (counting()) age(*shard.stores->counted, 1, unseen);
  }
  return erased;
}

size_t SparseTable::age(RowStore& store, size_t unseen_at, uint32_t unseen) {
  std::vector<Key> old;
  store.for_each([&](Key key, float* row) {
    row[unseen_at] += 1;
    if (row[unseen_at] >= static_cast<float>(unseen)) old.push_back(key);
  });
  for (const Key key : old) store.erase(key, RowStore::hash(key));
  return old.size();
}

std::optional<SparseTable::Scores> SparseTable::scores(Key key) const {
  if (!scoring()) return std::nullopt;
  const uint64_t hash = RowStore::hash(key);
  const Shard& shard = shards_[hash % shards_.size()];
  const Lock lock(shard.mutex);
  const float* const row = shard.stores->rows.find(key, hash);
  if (row == nullptr) return std::nullopt;
  return Scores{.show = row[scores_at_], .click = row[scores_at_ + 1]};
}

size_t SparseTable::floats(Section section) const {
  if (section == Section::rows) return weights_at_ + spec_.dim + state_size_;
  return counting() ? 1 + (spec_.track_unseen ? 1 : 0) : 0;
}

void SparseTable::check_rows(std::span<const Key> keys, size_t floats) const {
  check<DataError>(floats == keys.size() * spec_.dim, "table '", spec_.name, "': ", keys.size(),
                   " keys with ", floats, " floats, expected ", keys.size() * spec_.dim);
  check<DataError>(keys.size() <= std::numeric_limits<uint32_t>::max(), "table '", spec_.name,
                   "': ", keys.size(), " keys in one call, expected fewer than 2^32");
}

void SparseTable::check_column(std::span<const Key> keys, size_t values, const char* name) const {
  check<DataError>(values == 0 || values == keys.size(), "table '", spec_.name, "': ", keys.size(),
                   " keys with ", values, " values of column ", name);
}

float* SparseTable::make_row(Stores& stores, Key key, uint64_t hash) const {
  float* const row = stores.rows.insert(key, hash);
  initializer_.fill({row + weights_at_, spec_.dim}, RandomStream(row_seed_, key));
  rule_->init({row + weights_at_ + spec_.dim, state_size_});
  if (counting()) stores.counted->erase(key, hash);
  return row;
}

/// The row of a key that had none when its call began; null if it is not admitted.
float* SparseTable::row_for_pull(Stores& stores, Key key, uint64_t hash, uint32_t count) const {
  if (!counting()) return row_for_push(stores, key, hash);
  if (float* const row = stores.rows.find(key, hash)) return row;
  float* counted = stores.counted->find(key, hash);
  if (counted == nullptr) counted = stores.counted->insert(key, hash);
  counted[0] += static_cast<float>(count);
  if (spec_.track_unseen) counted[1] = 0;
  if (counted[0] < static_cast<float>(entry_.count())) return nullptr;
  return make_row(stores, key, hash);
}

float* SparseTable::row_for_push(Stores& stores, Key key, uint64_t hash) const {
  if (float* const row = stores.rows.find(key, hash)) return row;
  if (counting()) return nullptr;
  const bool drawn = entry_.kind() == Entry::Kind::probability;
  if (drawn && RandomStream(entry_seed_, key).uniform(0) >= entry_.probability()) return nullptr;
  return make_row(stores, key, hash);
}

void SparseTable::add_scores(std::span<const Key> keys, const PushColumns& columns) {
  each_row(keys, weights_at_, [&](Stores& stores, const Probe& probe, float* row) {
    const size_t i = probe.position;
    if (row == nullptr) row = row_for_push(stores, keys[i], probe.hash);
    row[scores_at_] += columns.show.empty() ? 1 : columns.show[i];
    row[scores_at_ + 1] += columns.click.empty() ? 0 : columns.click[i];
  });
}

}  // namespace argosy

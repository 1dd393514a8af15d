// memory: rows in this process' memory, spread over shards with a lock each.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/ps/arena.h"
#include "argosy/ps/row_store.h"
#include "argosy/ps/row_table.h"

namespace argosy::ps::tables {
namespace {

constexpr size_t kChunk = 256;  // rows found together, then used while they are in the cache
constexpr size_t kMaxShards = size_t{1} << RowStore::kFreeHashBits;
constexpr uint64_t kUnknown = ~uint64_t{0};  // a generation that no shard has

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

// A hint is the address of a row; 0: there was none.
float* row_of(uint64_t hint) { return reinterpret_cast<float*>(hint); }
uint64_t hint_of(const float* row) { return reinterpret_cast<uint64_t>(row); }

/// The content of one shard.
struct Stores {
  Stores(const RowRecipe& recipe, std::shared_ptr<Arena> memory)
      : arena(std::move(memory)), rows(recipe.floats(Section::rows), *arena) {
    if (recipe.counts_keys()) counted.emplace(recipe.floats(Section::counted), *arena);
  }
  RowStore& operator[](Section section) { return section == Section::rows ? rows : *counted; }

  std::shared_ptr<Arena> arena;
  RowStore rows;
  std::optional<RowStore> counted;  // of a count_filter only
};

/// Invariants, under a shard's mutex:
///   1. A key of the shard is in `rows` or in `counted` or in neither, never in both.
///   2. The address of a row stays until `generation` changes; rows that are made leave it alone.
struct alignas(64) Shard {
  explicit Shard(std::unique_ptr<Stores> first) : stores(std::move(first)) {}
  Mutex mutex;
  std::unique_ptr<Stores> stores GUARDED_BY(mutex);
  uint64_t generation GUARDED_BY(mutex) = 0;
};

class MemoryTable final : public RowTable, private RowImages {
 public:
  explicit MemoryTable(const TableSpec& spec) : RowTable(spec) {
    check<ConfigError>(std::has_single_bit(spec.shards) && spec.shards <= kMaxShards, "table '",
                       spec.name, "': shards is ", spec.shards, ", expected a power of two up to ",
                       kMaxShards);
    for (std::unique_ptr<Stores>& stores : fresh_stores()) shards_.emplace_back(std::move(stores));
  }

  void locate(std::span<const Key> keys, const RowColumns& columns, RowPart part,
              Ticket& ticket) override {
    recipe().check_rows(keys, keys.size() * spec().dim);
    recipe().check_column(keys, columns.counts.size(), "counts");
    recipe().check_column(keys, columns.shows.size(), "show");
    recipe().check_column(keys, columns.clicks.size(), "click");
    ticket.keys.assign(keys.begin(), keys.end());
    const bool scores = recipe().scores_rows(), counts = recipe().counts_keys() || scores;
    const auto keep = [](auto& to, bool wanted, const auto& values) {
      to.assign(values.begin(), wanted ? values.end() : values.begin());
    };
    keep(ticket.counts, counts, columns.counts);
    keep(ticket.shows, scores, columns.shows);
    keep(ticket.clicks, scores, columns.clicks);
    ticket.part = part;
    ticket.batch.group(keys, shards_.size(), part.index, part.count);
    ticket.hints.resize(ticket.batch.size());
    ticket.generations.assign(shards_.size(), kUnknown);
  }

  bool ready(Ticket&) override { return true; }
  void when_ready(Ticket&, std::function<void()> task) override { task(); }  // it always is

  void read(Ticket& ticket, Purpose purpose, std::span<float> rows) override {
    recipe().check_rows(ticket.keys, rows.size());
    const size_t dim = spec().dim, weights = recipe().weights_at();
    each_chunk(ticket, weights + dim, [&](Stores& stores, const Chunk& chunk) {
      for (size_t i = 0; i < chunk.probes.size(); ++i) {
        const Probe& probe = chunk.probes[i];
        float* const to = rows.data() + probe.position * dim;
        const float* row = row_of(chunk.hints[i]);
        if (row == nullptr && !chunk.fresh) {  // it may have been made since
          row = stores.rows.find(ticket.keys[probe.position], probe.hash);
          chunk.hints[i] = hint_of(row);
        }
        if (row != nullptr)
          copy_floats(row + weights, dim, to);
        else if (purpose == Purpose::training)
          foresee(stores, ticket, probe, {to, dim});
        else
          std::fill_n(to, dim, 0.0F);
      }
    });
  }

  void apply(Ticket& ticket, std::span<const float> grads, uint64_t step) override {
    recipe().check_rows(ticket.keys, grads.size());
    const Update update = recipe().update_of(step);
    const size_t dim = spec().dim, weights = recipe().weights_at();
    std::array<RowStep, kChunk> steps;
    thread_local std::vector<float> scratch;  // gradients of a chunk, clipped and decayed
    each_chunk(ticket, recipe().floats(Section::rows), [&](Stores& stores, const Chunk& chunk) {
      size_t count = 0;
      for (size_t i = 0; i < chunk.probes.size(); ++i) {
        const Probe& probe = chunk.probes[i];
        float* row = row_of(chunk.hints[i]);
        if (row == nullptr) {
          row = row_for_apply(stores, ticket, probe);
          chunk.hints[i] = hint_of(row);
        }
        if (row == nullptr) continue;
        recipe().mark_used(row);
        if (recipe().scores_rows())
          recipe().add_scores(row, show_of(ticket, probe.position),
                              ticket.clicks.empty() ? 0 : ticket.clicks[probe.position]);
        steps[count++] = {row + weights, grads.data() + probe.position * dim};
      }
      recipe().apply(std::span(steps).first(count), update, scratch);
    });
  }

  void assign(std::span<const Key> keys, std::span<const float> rows) override {
    recipe().check_rows(keys, rows.size());
    const size_t dim = spec().dim;
    Ticket ticket;
    locate(keys, {}, {}, ticket);
    each_chunk(ticket, recipe().weights_at() + dim, [&](Stores& stores, const Chunk& chunk) {
      for (size_t i = 0; i < chunk.probes.size(); ++i) {
        const Probe& probe = chunk.probes[i];
        const Key key = keys[probe.position];
        float* row = row_of(chunk.hints[i]);
        if (row == nullptr) row = stores.rows.find(key, probe.hash);
        if (row == nullptr) row = make_row(stores, key, probe.hash);
        recipe().mark_used(row);
        copy_floats(rows.data() + probe.position * dim, dim, row + recipe().weights_at());
      }
    });
  }

  size_t shrink(uint32_t unseen) override {
    check<ConfigError>(spec().track_unseen, "table '", spec().name,
                       "': shrink needs track_unseen, which is off");
    size_t erased = 0;
    for (Shard& shard : shards_) {
      const Lock lock(shard.mutex);
      ++shard.generation;
      erased += age(*shard.stores, Section::rows, unseen);
      if (recipe().counts_keys()) age(*shard.stores, Section::counted, unseen);
    }
    return erased;
  }

  size_t size() const override {
    size_t rows = 0;
    for (Shard& shard : shards_) {
      const Lock lock(shard.mutex);
      rows += shard.stores->rows.size();
    }
    return rows;
  }

  RowImages& images() override { return *this; }

 private:
  /// Some keys of one shard.
  struct Chunk {
    std::span<const Probe> probes;
    std::span<uint64_t> hints;
    bool fresh;  // looked up by this call; others may lack rows that were made since
  };

  /// Calls use(stores, chunk) for all keys of the ticket's part, under the lock of their shard,
  /// with hints that are good where they are not 0. The first `floats` of each row are on their way
  /// to the cache.
  template <class Use>
  void each_chunk(Ticket& ticket, size_t floats, const Use& use) {
    const size_t first = first_shard();
    for (size_t turn = 0; turn < shards_.size(); ++turn) {
      const size_t number = (first + turn) % shards_.size();
      const std::span<const Probe> probes = ticket.batch.shard(number);
      if (probes.empty()) continue;
      const std::span<uint64_t> hints =
          std::span(ticket.hints).subspan(ticket.batch.begin(number), probes.size());
      Shard& shard = shards_[number];
      const Lock lock(shard.mutex);
      const bool known = ticket.generations[number] == shard.generation;
      for (size_t at = 0; at < probes.size(); at += kChunk) {
        const size_t n = std::min(kChunk, probes.size() - at);
        const Chunk chunk{probes.subspan(at, n), hints.subspan(at, n), !known};
        if (known) {
          for (const uint64_t hint : chunk.hints) RowStore::prefetch(row_of(hint), floats);
        } else {
          std::array<float*, kChunk> found;
          shard.stores->rows.find_all(chunk.probes, ticket.keys, floats, found);
          std::transform(found.begin(), found.begin() + n, chunk.hints.begin(), hint_of);
        }
        use(*shard.stores, chunk);
      }
      ticket.generations[number] = shard.generation;  // last: `use` may throw before all are found
    }
  }

  /// Threads start at different shards, so as not to queue at the same lock.
  static size_t first_shard() {
    constexpr size_t kStep = 5;  // between the first shards of two threads
    static std::atomic<size_t> threads = 0;
    thread_local const size_t first = threads++ * kStep;
    return first;
  }

  static float count_of(const Ticket& ticket, size_t position) {
    return ticket.counts.empty() ? 1 : static_cast<float>(ticket.counts[position]);
  }
  static float show_of(const Ticket& ticket, size_t position) {
    return ticket.shows.empty() ? count_of(ticket, position) : ticket.shows[position];
  }

  /// The weights that a row would have if the ticket were applied now; zeros: it would have none.
  void foresee(Stores& stores, const Ticket& ticket, const Probe& probe,
               std::span<float> weights) const {
    const Key key = ticket.keys[probe.position];
    float count = count_of(ticket, probe.position);
    if (recipe().counts_keys())
      if (const float* const counted = stores.counted->find(key, probe.hash)) count += counted[0];
    if (recipe().admits(key, count))
      recipe().first_weights(key, weights);
    else
      std::ranges::fill(weights, 0.0F);
  }

  /// The row of a key that had none when the ticket was last read; null if it is not admitted.
  float* row_for_apply(Stores& stores, const Ticket& ticket, const Probe& probe) {
    const Key key = ticket.keys[probe.position];
    if (float* const row = stores.rows.find(key, probe.hash)) return row;
    float count = count_of(ticket, probe.position);
    if (recipe().counts_keys()) {
      float* counted = stores.counted->find(key, probe.hash);
      if (counted == nullptr) counted = stores.counted->insert(key, probe.hash);
      count = counted[0] += count;
      if (recipe().tracks_unseen()) counted[1] = 0;
    }
    return recipe().admits(key, count) ? make_row(stores, key, probe.hash) : nullptr;
  }

  float* make_row(Stores& stores, Key key, uint64_t hash) {
    float* const row = stores.rows.insert(key, hash);
    recipe().make_row(key, row);
    if (recipe().counts_keys()) stores.counted->erase(key, hash);
    return row;
  }

  size_t age(Stores& stores, Section section, uint32_t unseen) {
    std::vector<Key> old;
    stores[section].for_each([&](Key key, float* image) {
      if (recipe().age(section, image) >= static_cast<float>(unseen)) old.push_back(key);
    });
    for (const Key key : old) stores[section].erase(key, RowStore::hash(key));
    return old.size();
  }

  // RowImages:

  std::vector<Key> keys(Section section) const override {
    std::vector<Key> all;
    if (recipe().floats(section) == 0) return all;
    if (section == Section::rows) all.reserve(size());
    for (Shard& shard : shards_) {
      const Lock lock(shard.mutex);
      (*shard.stores)[section].for_each([&](Key key, const float*) { all.push_back(key); });
    }
    std::ranges::sort(all);
    return all;
  }

  void read(Section section, std::span<const Key> keys, std::vector<Key>& found,
            std::vector<float>& images) const override {
    const size_t width = recipe().floats(section);
    if (width == 0) return;
    KeyBatch batch;
    batch.group(keys, shards_.size());
    const size_t first = images.size();
    images.resize(first + keys.size() * width);
    std::vector<bool> there(keys.size());
    for (size_t number = 0; number < shards_.size(); ++number) {
      const std::span<const Probe> probes = batch.shard(number);
      if (probes.empty()) continue;
      Shard& shard = shards_[number];
      const Lock lock(shard.mutex);
      std::array<float*, kChunk> rows;
      for (size_t at = 0; at < probes.size(); at += kChunk) {
        const auto chunk = probes.subspan(at, std::min(kChunk, probes.size() - at));
        (*shard.stores)[section].find_all(chunk, keys, width, rows);
        for (size_t i = 0; i < chunk.size(); ++i) {
          if (rows[i] == nullptr) continue;
          there[chunk[i].position] = true;
          std::copy_n(rows[i], width, images.data() + first + chunk[i].position * width);
        }
      }
    }
    size_t to = first;  // images of missing keys are closed up
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!there[i]) continue;
      found.push_back(keys[i]);
      const size_t from = first + i * width;
      if (from != to) std::copy_n(images.data() + from, width, images.data() + to);
      to += width;
    }
    images.resize(to);
  }

  void put(Section section, std::span<const Key> keys, std::span<const float> images) override {
    const size_t width = recipe().floats(section);
    const bool counts = section == Section::rows && recipe().counts_keys();
    thread_local KeyBatch batch;
    batch.group(keys, shards_.size());
    for (size_t number = 0; number < shards_.size(); ++number) {
      const std::span<const Probe> probes = batch.shard(number);
      if (probes.empty()) continue;
      Shard& shard = shards_[number];
      const Lock lock(shard.mutex);
      RowStore& store = (*shard.stores)[section];
      std::array<float*, kChunk> found;
      for (size_t at = 0; at < probes.size(); at += kChunk) {
        const auto chunk = probes.subspan(at, std::min(kChunk, probes.size() - at));
        store.find_all(chunk, keys, width, found);
        for (size_t i = 0; i < chunk.size(); ++i) {
          const Key key = keys[chunk[i].position];
          // Of a key that comes twice only the second call finds the row.
          float* image = found[i] != nullptr ? found[i] : store.find(key, chunk[i].hash);
          if (image == nullptr) image = store.insert(key, chunk[i].hash);
          std::copy_n(images.data() + chunk[i].position * width, width, image);
          if (counts) (*shard.stores)[Section::counted].erase(key, chunk[i].hash);
        }
      }
    }
  }

  void visit(Section section, Cursor& cursor, size_t at_most,
             FunctionRef<void(Key, std::span<const float>)> visit) const override {
    const size_t width = recipe().floats(section);
    if (width == 0) cursor.at_end = true;
    for (; !cursor.at_end && cursor.shard < shards_.size() && at_most > 0;
         ++cursor.shard, cursor.row = 0) {
      Shard& shard = shards_[cursor.shard];
      const Lock lock(shard.mutex);
      const size_t visited =
          (*shard.stores)[section].walk(cursor.row, at_most, [&](Key key, const float* image) {
            visit(key, {image, width});
          });
      at_most -= visited;
      if (at_most == 0) break;
    }
    cursor.at_end = cursor.at_end || cursor.shard >= shards_.size();
  }

  std::vector<std::unique_ptr<Stores>> fresh_stores() const {
    const auto arena = std::make_shared<Arena>();
    std::vector<std::unique_ptr<Stores>> fresh;
    for (size_t i = 0; i < spec().shards; ++i)
      fresh.push_back(std::make_unique<Stores>(recipe(), arena));
    return fresh;
  }

  class MemoryLoading final : public Loading {
   public:
    explicit MemoryLoading(MemoryTable& table) : table_(table), fresh_(table.fresh_stores()) {}

    void add(Section section, std::span<const Key> keys, std::span<const float> images) override {
      const size_t width = table_.recipe().floats(section);
      for (size_t i = 0; i < keys.size(); ++i) {
        const uint64_t hash = RowStore::hash(keys[i]);
        Stores& stores = *fresh_[hash % fresh_.size()];
        const bool twice = stores.rows.find(keys[i], hash) != nullptr ||
                           (stores.counted && stores.counted->find(keys[i], hash) != nullptr);
        check<DataError>(!twice, "table '", table_.spec().name, "': key ", keys[i], " comes twice");
        std::copy_n(images.data() + i * width, width, stores[section].insert(keys[i], hash));
      }
    }

    void commit() override {
      for (size_t i = 0; i < fresh_.size(); ++i) {
        Shard& shard = table_.shards_[i];
        const Lock lock(shard.mutex);
        shard.stores.swap(fresh_[i]);
        ++shard.generation;
      }
    }

   private:
    MemoryTable& table_;
    std::vector<std::unique_ptr<Stores>> fresh_;
  };

  std::unique_ptr<Loading> begin_load() override { return std::make_unique<MemoryLoading>(*this); }

  mutable std::deque<Shard> shards_;
};

}  // namespace

std::unique_ptr<RowTable> memory(const TableSpec& spec, const Call& settings,
                                 const TableHome& /*home*/) {
  settings.expect("store", 0, {});
  return std::make_unique<MemoryTable>(spec);
}

}  // namespace argosy::ps::tables

// log(memory=2G): hot rows in so much memory, all others in files of the table's own.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <deque>
#include <utility>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/base/memory_size.h"
#include "argosy/base/mutex.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/table_home.h"
#include "argosy/ps/tier_fetch.h"
#include "argosy/ps/tier_shard.h"

namespace argosy::ps::tables {
namespace {

constexpr const char* kDefaultMemory = "64M";
constexpr size_t kReadsOfTask = 64;

/// All rows of the table; a load makes another one.
struct TierContent {
  TierContent(const TableSpec& spec, std::shared_ptr<TierFiles> own, const TierSizes& sizes)
      : recipe(spec), files(std::move(own)) {
    for (size_t i = 0; i < spec.shards; ++i) shards.emplace_back(recipe, *files, sizes);
  }
  void set_memory(size_t of_shard) {
    for (TierShard& shard : shards) shard.set_memory(of_shard);
  }
  void fit() {
    for (TierShard& shard : shards) shard.fit();
  }

  const RowRecipe recipe;  // reads that are under way may outlive the table
  const std::shared_ptr<TierFiles> files;
  std::deque<TierShard> shards;
};

/// What one task reads.
struct ReadTask {
  struct Of {
    size_t shard;
    std::vector<TierRead> reads;
  };
  std::vector<Of> shards = {};
  size_t reads = 0;
};

size_t row_floats(const RowRecipe& recipe) {
  return std::max(recipe.floats(Section::rows), recipe.floats(Section::counted));
}

TierSizes sizes_of(const RowRecipe& recipe, uint64_t memory) {
  const TableSpec& spec = recipe.spec();
  const size_t most = size_t{1} << RowStore::kFreeHashBits;
  check<ConfigError>(std::has_single_bit(spec.shards) && spec.shards <= most, "table '", spec.name,
                     "': shards is ", spec.shards, ", expected a power of two up to ", most);
  const size_t floats = row_floats(recipe), least = spec.shards * TierSizes::least(floats);
  check<ConfigError>(memory >= least, "table '", spec.name, "': memory=", memory_text(memory),
                     " is too little, ", spec.shards, " shards of rows of ",
                     TierSlots::slot_bytes(floats), " bytes need at least ", memory_text(least));
  return TierSizes::of(memory / spec.shards, floats);
}

const TableHome& checked(const TableHome& home, const TableSpec& spec) {
  check<ConfigError>(home.env != nullptr && !home.folder.empty(), "table '", spec.name,
                     "': store '", spec.store,
                     "' keeps rows on the disk, and there is no folder for them");
  return home;
}

/// Each shard has its own share of the memory, its own lock and its own files.
class LogTable final : public RowTable, private RowImages {
 public:
  LogTable(const TableSpec& spec, uint64_t memory, const TableHome& home)
      : RowTable(spec),
        home_(checked(home, spec)),
        memory_(memory),
        sizes_(sizes_of(recipe(), memory)),
        files_(std::make_shared<TierFiles>(
            *home_.env, home_.folder + "/" + spec.name,
            home_.metrics != nullptr ? home_.metrics : std::make_shared<TierMetrics>())) {
    files_->remove_all();
    content_ = std::make_shared<TierContent>(spec, files_, sizes_);
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
    ticket.batch.group(keys, spec().shards, part.index, part.count);
    ticket.hints.assign(ticket.batch.size(), 0);
    ticket.generations.assign(spec().shards, 0);
    fetch(ticket);
  }

  bool ready(Ticket& ticket) override {
    if (ticket.fetch == nullptr) {
      if (keeps(ticket)) return true;
      fetch(ticket);
    }
    if (ticket.fetch == nullptr) return true;
    const auto& fetch = static_cast<const TierFetch&>(*ticket.fetch);
    if (!fetch.ended()) return false;
    if (const std::exception_ptr error = fetch.error()) {
      ticket.fetch.reset();
      std::rethrow_exception(error);
    }
    return true;  // rows that had to go again meanwhile are read where they are used
  }
  void when_ready(Ticket& ticket, std::function<void()> task) override {
    if (ticket.fetch == nullptr) return task();
    static_cast<TierFetch&>(*ticket.fetch).when_ended(std::move(task));
  }

  void read(Ticket& ticket, Purpose purpose, std::span<float> rows) override {
    recipe().check_rows(ticket.keys, rows.size());
    const size_t dim = spec().dim, weights = recipe().weights_at();
    each_shard(ticket,
               [&](TierRows& tier, std::span<const Probe> probes, std::span<uint32_t> slots) {
                 for (size_t i = 0; i < probes.size(); ++i) {
                   const std::span<float> to = rows.subspan(probes[i].position * dim, dim);
                   if (is_row(tier, slots[i]))
                     std::copy_n(tier.image(slots[i]) + weights, dim, to.begin());
                   else if (purpose == Purpose::training)
                     foresee(tier, slots[i], ticket, probes[i], to);
                   else
                     std::ranges::fill(to, 0.0F);
                 }
               });
    ticket.fetch.reset();
  }

  void apply(Ticket& ticket, std::span<const float> grads, uint64_t step) override {
    recipe().check_rows(ticket.keys, grads.size());
    const Update update = recipe().update_of(step);
    check_room(ticket);
    const size_t dim = spec().dim, weights = recipe().weights_at();
    std::array<RowStep, kMostSteps> steps;
    thread_local std::vector<float> scratch;  // gradients of a chunk, clipped and decayed
    each_shard(ticket,
               [&](TierRows& tier, std::span<const Probe> probes, std::span<uint32_t> slots) {
                 size_t count = 0;
                 for (size_t i = 0; i < probes.size(); ++i) {
                   const size_t position = probes[i].position;
                   if (!is_row(tier, slots[i]) && !admit(tier, slots[i], ticket, probes[i]))
                     continue;
                   tier.change(slots[i]);
                   float* const row = tier.image(slots[i]);
                   recipe().mark_used(row);
                   if (recipe().scores_rows())
                     recipe().add_scores(row, show_of(ticket, position),
                                         ticket.clicks.empty() ? 0 : ticket.clicks[position]);
                   steps[count++] = {row + weights, grads.data() + position * dim};
                 }
                 recipe().apply(std::span(steps).first(count), update, scratch);
               });
    ticket.fetch.reset();
  }

  void assign(std::span<const Key> keys, std::span<const float> rows) override {
    recipe().check_rows(keys, rows.size());
    const size_t dim = spec().dim;
    each_shard(*content(), keys,
               [&](TierRows& tier, std::span<const Probe> probes, std::span<uint32_t> slots) {
                 for (size_t i = 0; i < probes.size(); ++i) {
                   if (!is_row(tier, slots[i]))
                     make_row(tier, slots[i], keys[probes[i].position], probes[i]);
                   tier.change(slots[i]);
                   float* const row = tier.image(slots[i]);
                   recipe().mark_used(row);
                   std::copy_n(rows.data() + probes[i].position * dim, dim,
                               row + recipe().weights_at());
                 }
               });
  }

  size_t shrink(uint32_t unseen) override {
    check<ConfigError>(spec().track_unseen, "table '", spec().name,
                       "': shrink needs track_unseen, which is off");
    const auto all = content();
    size_t erased = 0;
    for (TierShard& shard : all->shards) erased += shard.shrink(unseen);
    return erased;
  }

  size_t size() const override {
    const auto all = content();
    size_t rows = 0;
    for (const TierShard& shard : all->shards) rows += shard.size(Section::rows);
    return rows;
  }

  RowImages& images() override { return *this; }

 private:
  static constexpr size_t kMostSteps = 256;  // TierSizes::chunk, at most

  std::shared_ptr<TierContent> content() const {
    const Lock lock(mutex_);
    return content_;
  }

  static bool is_row(const TierRows& tier, uint32_t slot) {
    return slot != TierRows::kAbsent && tier.section(slot) == Section::rows;
  }

  /// Threads start at different shards, so as not to queue at the same lock.
  static size_t first_tier_shard() {
    constexpr size_t kStep = 5;  // between the first shards of two threads
    static std::atomic<size_t> threads = 0;
    thread_local const size_t first = threads++ * kStep;
    return first;
  }

  void each_shard(Ticket& ticket, TierShard::Use use) {
    const auto all = content();
    const size_t first = first_tier_shard(), shards = all->shards.size();
    for (size_t turn = 0; turn < shards; ++turn) {
      const size_t number = (first + turn) % shards;
      const std::span<const Probe> probes = ticket.batch.shard(number);
      if (probes.empty()) continue;
      all->shards[number].use(
          probes, ticket.keys,
          std::span(ticket.hints).subspan(ticket.batch.begin(number), probes.size()), use);
    }
  }
  static void each_shard(TierContent& content, std::span<const Key> keys, TierShard::Use use) {
    KeyBatch batch;
    batch.group(keys, content.shards.size());
    std::vector<uint64_t> hints(keys.size());
    for (size_t number = 0; number < content.shards.size(); ++number) {
      const std::span<const Probe> probes = batch.shard(number);
      if (probes.empty()) continue;
      content.shards[number].use(probes, keys,
                                 std::span(hints).subspan(batch.begin(number), probes.size()), use);
    }
  }

  /// Whether all rows that were in memory when they were last looked for still are.
  bool keeps(const Ticket& ticket) const {
    const auto all = content();
    for (size_t number = 0; number < all->shards.size(); ++number)
      if (!ticket.batch.shard(number).empty() &&
          !all->shards[number].keeps_since(ticket.generations[number]))
        return false;
    return true;
  }

  /// Sends for the rows of a ticket that are not in memory.
  void fetch(Ticket& ticket) {
    ticket.fetch.reset();
    const auto all = content();
    std::vector<ReadTask> tasks;
    std::vector<TierRead> reads;
    for (size_t number = 0; number < all->shards.size(); ++number) {
      const std::span<const Probe> probes = ticket.batch.shard(number);
      if (probes.empty()) continue;
      TierShard& shard = all->shards[number];
      reads.clear();
      ticket.generations[number] = shard.turns();
      shard.find_cold(probes, ticket.keys,
                      std::span(ticket.hints).subspan(ticket.batch.begin(number), probes.size()),
                      shard.most_fetched(), reads);
      if (reads.empty()) continue;
      if (tasks.empty() || tasks.back().reads >= kReadsOfTask) tasks.emplace_back();
      tasks.back().reads += reads.size();
      tasks.back().shards.push_back({number, std::exchange(reads, {})});
    }
    if (tasks.empty()) return;
    const auto under_way = std::make_shared<TierFetch>(tasks.size());
    ticket.fetch = under_way;
    for (ReadTask& task : tasks) {
      const auto shared = std::make_shared<ReadTask>(std::move(task));
      auto run = [weak = std::weak_ptr(all), under_way, shared] {
        std::exception_ptr error;
        try {
          if (const auto content = weak.lock())
            for (ReadTask::Of& of : shared->shards) content->shards[of.shard].fetch(of.reads);
        } catch (...) {
          error = std::current_exception();
        }
        under_way->end(std::move(error));
      };
      if (home_.readers != nullptr)
        home_.readers->post(std::move(run));
      else
        home_.env->schedule({}, std::move(run));
    }
  }

  /// Refuses batches for whose rows there can be no memory.
  void check_room(const Ticket& ticket) const {
    const size_t rows = ticket.batch.size() * ticket.part.count;
    const size_t bytes = TierSlots::slot_bytes(row_floats(recipe()));
    if (rows * bytes < memory_ / 4) return;
    const auto all = content();
    size_t room = 0;
    for (TierShard& shard : all->shards) room += shard.room();
    check<ConfigError>(rows <= room, "table '", spec().name, "': ", rows, " rows of ", bytes,
                       " bytes are applied at once, but memory=", memory_text(memory_),
                       " has room for ", room,
                       " beside the index: use smaller batches or more memory");
  }

  static float count_of(const Ticket& ticket, size_t position) {
    return ticket.counts.empty() ? 1 : static_cast<float>(ticket.counts[position]);
  }
  static float show_of(const Ticket& ticket, size_t position) {
    return ticket.shows.empty() ? count_of(ticket, position) : ticket.shows[position];
  }

  /// The weights that a row would have if the ticket were applied now; zeros: it would have none.
  void foresee(const TierRows& tier, uint32_t slot, const Ticket& ticket, const Probe& probe,
               std::span<float> weights) const {
    const Key key = ticket.keys[probe.position];
    float count = count_of(ticket, probe.position);
    if (slot != TierRows::kAbsent) count += tier.image(slot)[0];  // it is counted
    if (recipe().admits(key, count))
      recipe().first_weights(key, weights);
    else
      std::ranges::fill(weights, 0.0F);
  }

  /// Makes the row of a key that has none, or counts the key. False: it has none yet.
  bool admit(TierRows& tier, uint32_t& slot, const Ticket& ticket, const Probe& probe) const {
    const Key key = ticket.keys[probe.position];
    float count = count_of(ticket, probe.position);
    if (recipe().counts_keys()) {
      if (slot == TierRows::kAbsent) slot = tier.make(key, probe.hash, Section::counted);
      tier.change(slot);
      float* const counted = tier.image(slot);
      count = counted[0] += count;
      if (recipe().tracks_unseen()) counted[1] = 0;
    }
    if (!recipe().admits(key, count)) return false;
    make_row(tier, slot, key, probe);
    return true;
  }

  void make_row(TierRows& tier, uint32_t& slot, Key key, const Probe& probe) const {
    if (slot == TierRows::kAbsent) {
      slot = tier.make(key, probe.hash, Section::rows);
    } else {
      tier.change(slot);
      tier.set_section(slot, Section::rows);
      std::fill_n(tier.image(slot), row_floats(recipe()), 0.0F);
    }
    recipe().make_row(key, tier.image(slot));
  }

  // RowImages:

  std::vector<Key> keys(Section section) const override {
    std::vector<Key> all;
    if (recipe().floats(section) == 0) return all;
    if (section == Section::rows) all.reserve(size());
    const auto now = content();
    for (TierShard& shard : now->shards) {
      uint64_t from = 0;
      for (bool ended = false; !ended;) {
        size_t page = kPage;
        ended = shard.walk(section, from, page, [&](Key key, const float*) { all.push_back(key); });
      }
    }
    std::ranges::sort(all);
    return all;
  }

  void read(Section section, std::span<const Key> keys, std::vector<Key>& found,
            std::vector<float>& images) const override {
    const size_t width = recipe().floats(section);
    if (width == 0) return;
    KeyBatch batch;
    batch.group(keys, spec().shards);
    const size_t first = images.size();
    images.resize(first + keys.size() * width);
    std::vector<bool> there(keys.size());
    const auto now = content();
    for (size_t number = 0; number < now->shards.size(); ++number)
      now->shards[number].read(
          section, batch.shard(number), keys, [&](size_t position, const float* image) {
            there[position] = true;
            std::copy_n(image, width, images.data() + first + position * width);
          });
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
    put_into(*content(), section, keys, images, [](Key) {});
  }

  /// `again` is called for keys that are there.
  template <class Again>
  void put_into(TierContent& content, Section section, std::span<const Key> keys,
                std::span<const float> images, const Again& again) const {
    const size_t width = recipe().floats(section);
    each_shard(content, keys,
               [&](TierRows& tier, std::span<const Probe> probes, std::span<uint32_t> slots) {
                 for (size_t i = 0; i < probes.size(); ++i) {
                   const size_t position = probes[i].position;
                   if (slots[i] == TierRows::kAbsent) {
                     slots[i] = tier.make(keys[position], probes[i].hash, section);
                   } else {
                     again(keys[position]);
                     tier.change(slots[i]);
                     tier.set_section(slots[i], section);
                   }
                   std::copy_n(images.data() + position * width, width, tier.image(slots[i]));
                 }
               });
  }

  void visit(Section section, Cursor& cursor, size_t at_most,
             FunctionRef<void(Key, std::span<const float>)> visit) const override {
    const size_t width = recipe().floats(section);
    if (width == 0) cursor.at_end = true;
    const auto now = content();
    for (; !cursor.at_end && cursor.shard < now->shards.size(); ++cursor.shard, cursor.row = 0)
      if (!now->shards[cursor.shard].walk(section, cursor.row, at_most,
                                          [&](Key key, const float* image) {
                                            visit(key, {image, width});
                                          }))
        break;
    cursor.at_end = cursor.at_end || cursor.shard >= now->shards.size();
  }

  /// Takes half of the table's memory until it is done.
  class LogLoading final : public Loading {
   public:
    explicit LogLoading(LogTable& table)
        : table_(table),
          fresh_(std::make_shared<TierContent>(table.spec(), table.files_, table.sizes_)) {
      const auto now = table.content();
      now->set_memory(table.sizes_.memory / 2);
      now->fit();
      fresh_->set_memory(table.sizes_.memory / 2);
    }
    ~LogLoading() override {
      fresh_.reset();
      table_.content()->set_memory(table_.sizes_.memory);
    }
    LogLoading(const LogLoading&) = delete;
    LogLoading& operator=(const LogLoading&) = delete;

    void add(Section section, std::span<const Key> keys, std::span<const float> images) override {
      table_.put_into(*fresh_, section, keys, images, [&](Key key) {
        fail<DataError>("table '", table_.spec().name, "': key ", key, " comes twice");
      });
    }
    void commit() override {
      const Lock lock(table_.mutex_);
      table_.content_.swap(fresh_);
    }

   private:
    LogTable& table_;
    std::shared_ptr<TierContent> fresh_;
  };

  std::unique_ptr<Loading> begin_load() override { return std::make_unique<LogLoading>(*this); }

  static constexpr size_t kPage = size_t{1} << 16;  // rows of a walk

  const TableHome home_;
  const uint64_t memory_;
  const TierSizes sizes_;
  const std::shared_ptr<TierFiles> files_;
  mutable Mutex mutex_;
  std::shared_ptr<TierContent> content_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<RowTable> log(const TableSpec& spec, const Call& settings, const TableHome& home) {
  settings.expect("store", 0, {"memory"});
  const std::string memory = settings.word("memory", kDefaultMemory);
  return std::make_unique<LogTable>(
      spec, parse_memory(memory, "table '" + spec.name + "': memory of its store"), home);
}

}  // namespace argosy::ps::tables

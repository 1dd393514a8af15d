#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/base/rng.h"
#include "argosy/base/thread.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/tables.def"

/// A kind of table for tests, "later", which takes every liberty that row_table.h leaves to a
/// table:
///   1. A ticket is hardly ever ready at once; it becomes ready on a thread of the table, and those
///      that wait do so in any order.
///   2. Ready is not for ever: a ticket that was read or applied has to be asked for again, and so
///      has every other when rows are assigned, erased or loaded.
///   3. Rows move in every call, and the floats that visit() shows are invalid after it.
/// Reading or applying a ticket that was not ready when it was last asked for is an error.
namespace argosy::ps::tables {

/// Thread safety: full, by one lock.
class LaterTable final : public RowTable, private RowImages {
 public:
  explicit LaterTable(const TableSpec& spec)
      : RowTable(spec), thread_("later", [this](const std::stop_token& stop) { run(stop); }) {}

  void locate(std::span<const Key> keys, const RowColumns& columns, RowPart part,
              Ticket& ticket) override {
    recipe().check_rows(keys, keys.size() * spec().dim);
    recipe().check_column(keys, columns.counts.size(), "counts");
    recipe().check_column(keys, columns.shows.size(), "show");
    recipe().check_column(keys, columns.clicks.size(), "click");
    ticket.keys.assign(keys.begin(), keys.end());
    ticket.counts.assign(columns.counts.begin(), columns.counts.end());
    ticket.shows.assign(columns.shows.begin(), columns.shows.end());
    ticket.clicks.assign(columns.clicks.begin(), columns.clicks.end());
    ticket.part = part;
    const Lock lock(mutex_);
    ticket.hints = {++last_};
    cold_again(states_[last_]);
  }

  bool ready(Ticket& ticket) override {
    const Lock lock(mutex_);
    State& state = state_of(ticket);
    state.said_ready = state.warm;
    return state.warm;
  }

  /// How often a ticket was waited for, over all tables of the program.
  static std::atomic<uint64_t>& waits() {
    static std::atomic<uint64_t> waits = 0;
    return waits;
  }

  void when_ready(Ticket& ticket, std::function<void()> task) override {
    ++waits();
    {
      const Lock lock(mutex_);
      waiting_.push_back({ticket.hints.at(0), std::move(task)});
    }
    changed_.notify_one();
  }

  void read(Ticket& ticket, Purpose purpose, std::span<float> rows) override {
    recipe().check_rows(ticket.keys, rows.size());
    const size_t dim = spec().dim;
    const Lock lock(mutex_);
    use(ticket);
    for (size_t i = 0; i < ticket.keys.size(); ++i) {
      const Key key = ticket.keys[i];
      if (!ticket.part.has(key, spec().shards)) continue;
      const std::span<float> to = rows.subspan(i * dim, dim);
      if (const auto row = rows_.find(key); row != rows_.end()) {
        move(row->second);
        std::copy_n(row->second.begin() + static_cast<std::ptrdiff_t>(recipe().weights_at()), dim,
                    to.begin());
      } else if (purpose == Purpose::training && recipe().admits(key, count_with(ticket, i))) {
        recipe().first_weights(key, to);
      } else {
        std::ranges::fill(to, 0.0F);
      }
    }
  }

  void apply(Ticket& ticket, std::span<const float> grads, uint64_t step) override {
    recipe().check_rows(ticket.keys, grads.size());
    const Update update = recipe().update_of(step);
    const Lock lock(mutex_);
    use(ticket);
    for (size_t i = 0; i < ticket.keys.size(); ++i) {
      const Key key = ticket.keys[i];
      if (!ticket.part.has(key, spec().shards)) continue;
      if (!rows_.contains(key) && !admit(key, count_with(ticket, i))) continue;
      Image& row = rows_.at(key);
      move(row);
      recipe().mark_used(row.data());
      if (recipe().scores_rows())
        recipe().add_scores(row.data(),
                            ticket.shows.empty() ? count_of(ticket, i) : ticket.shows[i],
                            ticket.clicks.empty() ? 0 : ticket.clicks[i]);
      RowStep one{row.data() + recipe().weights_at(), grads.data() + i * spec().dim};
      recipe().apply({&one, 1}, update, scratch_);
    }
  }

  void assign(std::span<const Key> keys, std::span<const float> rows) override {
    recipe().check_rows(keys, rows.size());
    const Lock lock(mutex_);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!rows_.contains(keys[i])) make(keys[i]);
      Image& row = rows_.at(keys[i]);
      recipe().mark_used(row.data());
      std::copy_n(rows.data() + i * spec().dim, spec().dim, row.data() + recipe().weights_at());
    }
    all_cold_again();
  }

  size_t shrink(uint32_t unseen) override {
    check<ConfigError>(spec().track_unseen, "table '", spec().name,
                       "': shrink needs track_unseen, which is off");
    const auto limit = static_cast<float>(unseen);
    const auto erase_old = [&](Section section, Images& images) {
      std::set<Key> old;
      for (auto& [key, image] : images)
        if (recipe().age(section, image.data()) >= limit) old.insert(key);
      for (const Key key : old) images.erase(key);
      return old.size();
    };
    const Lock lock(mutex_);
    all_cold_again();
    erase_old(Section::counted, counted_);
    return erase_old(Section::rows, rows_);
  }

  size_t size() const override {
    const Lock lock(mutex_);
    return rows_.size();
  }

  RowImages& images() override { return *this; }

 private:
  using Image = std::vector<float>;
  using Images = std::map<Key, Image>;
  struct State {
    bool warm = false;
    bool said_ready = false;  // when it was last asked
  };
  struct Waiting {
    uint64_t ticket;
    std::function<void()> task;
  };

  void run(const std::stop_token& stop) {
    for (;;) {
      {
        const Lock lock(mutex_);
        const auto somebody_waits = [&]() REQUIRES(mutex_) { return !waiting_.empty(); };
        if (!changed_.wait(mutex_, stop, somebody_waits)) return;
      }
      make_one_ready();
    }
  }
  void make_one_ready() {
    Waiting one;
    {
      const Lock lock(mutex_);
      if (waiting_.empty()) return;
      const auto at = static_cast<std::ptrdiff_t>(random_.below(drawn_++, waiting_.size()));
      one = std::move(waiting_[static_cast<size_t>(at)]);
      waiting_.erase(waiting_.begin() + at);
      states_[one.ticket].warm = true;
    }
    one.task();
  }

  State& state_of(const Ticket& ticket) REQUIRES(mutex_) { return states_.at(ticket.hints.at(0)); }
  void cold_again(State& state) REQUIRES(mutex_) { state.warm = random_.below(drawn_++, 4) == 0; }
  void all_cold_again() REQUIRES(mutex_) {
    for (auto& [ticket, state] : states_) cold_again(state);
  }
  void use(const Ticket& ticket) REQUIRES(mutex_) {
    State& state = state_of(ticket);
    if (!std::exchange(state.said_ready, false))
      throw std::logic_error("table '" + spec().name + "': a ticket is used that is not ready");
    cold_again(state);
  }
  static void move(Image& image) {
    Image elsewhere = image;
    std::ranges::fill(image, std::numeric_limits<float>::quiet_NaN());
    image.swap(elsewhere);
  }

  static float count_of(const Ticket& ticket, size_t i) {
    return ticket.counts.empty() ? 1 : static_cast<float>(ticket.counts[i]);
  }
  float count_with(const Ticket& ticket, size_t i) const REQUIRES(mutex_) {
    const auto counted = counted_.find(ticket.keys[i]);
    return count_of(ticket, i) + (counted == counted_.end() ? 0 : counted->second[0]);
  }
  bool admit(Key key, float count) REQUIRES(mutex_) {
    if (recipe().admits(key, count)) {
      make(key);
      return true;
    }
    if (!recipe().counts_keys()) return false;
    Image& counted = counted_[key];
    counted.assign(recipe().floats(Section::counted), 0.0F);
    counted[0] = count;
    return false;
  }
  void make(Key key) REQUIRES(mutex_) {
    Image& row = rows_[key];
    row.assign(recipe().floats(Section::rows), 0.0F);
    recipe().make_row(key, row.data());
    counted_.erase(key);
  }

  const Images& of(Section section) const REQUIRES(mutex_) {
    return section == Section::rows ? rows_ : counted_;
  }
  std::vector<Key> keys(Section section) const override {
    const Lock lock(mutex_);
    std::vector<Key> all;
    for (const auto& [key, image] : of(section)) all.push_back(key);
    return all;
  }
  void read(Section section, std::span<const Key> keys, std::vector<Key>& found,
            std::vector<float>& images) const override {
    const Lock lock(mutex_);
    for (const Key key : keys) {
      const auto image = of(section).find(key);
      if (image == of(section).end()) continue;
      found.push_back(key);
      images.insert(images.end(), image->second.begin(), image->second.end());
    }
  }
  void put(Section section, std::span<const Key> keys, std::span<const float> images) override {
    const size_t width = recipe().floats(section);
    const Lock lock(mutex_);
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::span<const float> image = images.subspan(i * width, width);
      (section == Section::rows ? rows_ : counted_)[keys[i]].assign(image.begin(), image.end());
      if (section == Section::rows) counted_.erase(keys[i]);
    }
    all_cold_again();
  }
  /// The cursor is the key to go on with.
  void visit(Section section, Cursor& cursor, size_t at_most,
             FunctionRef<void(Key, std::span<const float>)> visit) const override {
    const Lock lock(mutex_);
    if (cursor.at_end || cursor.shard > 0) {
      cursor.at_end = true;
      return;
    }
    const Images& images = of(section);
    auto at = images.lower_bound(cursor.row);
    for (; at != images.end() && at_most > 0; ++at, --at_most) {
      Image shown = at->second;
      visit(at->first, shown);
      std::ranges::fill(shown, std::numeric_limits<float>::quiet_NaN());
    }
    cursor.at_end = at == images.end();
    if (!cursor.at_end) cursor.row = at->first;
  }

  class LaterLoading final : public Loading {
   public:
    explicit LaterLoading(LaterTable& table) : table_(table) {}
    void add(Section section, std::span<const Key> keys, std::span<const float> images) override {
      const size_t width = table_.recipe().floats(section);
      for (size_t i = 0; i < keys.size(); ++i) {
        check<DataError>(!rows_.contains(keys[i]) && !counted_.contains(keys[i]), "table '",
                         table_.spec().name, "': key ", keys[i], " comes twice");
        const std::span<const float> image = images.subspan(i * width, width);
        (section == Section::rows ? rows_ : counted_)[keys[i]].assign(image.begin(), image.end());
      }
    }
    void commit() override {
      const Lock lock(table_.mutex_);
      table_.rows_.swap(rows_);
      table_.counted_.swap(counted_);
      table_.all_cold_again();
    }

   private:
    LaterTable& table_;
    Images rows_, counted_;
  };
  std::unique_ptr<Loading> begin_load() override { return std::make_unique<LaterLoading>(*this); }

  const RandomStream random_{20261118};
  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t drawn_ GUARDED_BY(mutex_) = 0;
  Images rows_ GUARDED_BY(mutex_), counted_ GUARDED_BY(mutex_);
  uint64_t last_ GUARDED_BY(mutex_) = 0;                 // ticket
  std::map<uint64_t, State> states_ GUARDED_BY(mutex_);  // by ticket
  std::deque<Waiting> waiting_ GUARDED_BY(mutex_);
  std::vector<float> scratch_ GUARDED_BY(mutex_);
  Thread thread_;  // last, so that it ends first
};

inline std::unique_ptr<RowTable> later(const TableSpec& spec, const Call& settings,
                                       const TableHome& /*home*/) {
  settings.expect("store", 0, {});
  return std::make_unique<LaterTable>(spec);
}

}  // namespace argosy::ps::tables

namespace argosy::ps {

ARGOSY_COLLECT(tables, TablePlugin, tables_of_folder)

/// Replaces that of ps/tables/plugins.cc in a program that includes this header, in one source.
std::vector<TablePlugin> builtin_tables() {
  std::vector<TablePlugin> all = tables_of_folder();
  all.push_back({"later", tables::later});
  return all;
}

}  // namespace argosy::ps

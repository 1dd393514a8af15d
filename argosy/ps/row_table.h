#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/function_ref.h"
#include "argosy/base/key.h"
#include "argosy/base/plugins.h"
#include "argosy/ps/key_batch.h"
#include "argosy/ps/row_columns.h"
#include "argosy/ps/row_recipe.h"
#include "argosy/ps/table_home.h"

namespace argosy::ps {

/// One of `count` parts of a table's rows, cut by shard: threads that take different parts never
/// wait for each other's locks.
struct RowPart {
  size_t index = 0, count = 1;
  /// Whether a key of a table with so many shards is in this part.
  bool has(Key key, size_t shards) const {
    return count == 1 || RowStore::hash(key) % shards % count == index;
  }
};

/// What a table sends for on behalf of a ticket; the table's own.
class RowFetch {
 public:
  virtual ~RowFetch() = default;
};

/// Keys whose rows are in use, and what the table remembers of them between locate, read and apply.
/// It holds hints, not pins: rows may move or vanish between two calls, and the table looks them up
/// again if their generation has changed. The next locate reuses its memory. Thread safety: none.
struct Ticket {
  std::vector<Key> keys;         // of every part
  std::vector<uint32_t> counts;  // side columns that the recipe wants; else empty
  std::vector<float> shows, clicks;
  RowPart part;
  KeyBatch batch;                     // the keys of the part, by shard
  std::vector<uint64_t> hints;        // by place in batch; the table's own
  std::vector<uint64_t> generations;  // by shard, of the hints
  std::shared_ptr<RowFetch> fetch;    // since locate or ready; null: nothing was far away

  RowColumns columns() const { return {counts, shows, clicks}; }
};

/// Missing rows read as their initial values in training (if the key can be admitted), as zeros in
/// inference.
enum class Purpose : uint8_t { training, inference };

/// Whole rows, as they are saved: unseen count, scores, weights, state (RowRecipe says where).
/// For save, load, reshard and logs; reading an image does not count as use of the row.
class RowImages {
 public:
  virtual ~RowImages() = default;
  /// Sorted. While other calls run, it has at least the rows that exist throughout.
  virtual std::vector<Key> keys(Section section) const = 0;
  /// Appends those of `keys` that exist, in the same order.
  virtual void read(Section section, std::span<const Key> keys, std::vector<Key>& found,
                    std::vector<float>& images) const = 0;

  /// Position of a walk over all images of a section. Those made or erased meanwhile may or may not
  /// be visited, all others exactly once.
  struct Cursor {
    uint64_t shard = 0, row = 0;
    bool at_end = false;
  };
  /// Calls visit(key, image) for up to `at_most` images.
  virtual void visit(Section section, Cursor& cursor, size_t at_most,
                     FunctionRef<void(Key, std::span<const float>)> visit) const = 0;

  /// Sets images, making those that are missing. A key whose row is put is not counted any more.
  virtual void put(Section section, std::span<const Key> keys, std::span<const float> images) = 0;

  /// New content, built beside the current one; commit() swaps it in as a whole. Dropped without
  /// commit() it changes nothing.
  class Loading {
   public:
    virtual ~Loading() = default;
    /// Images of floats(section) each. Throws DataError for a key added before.
    virtual void add(Section section, std::span<const Key> keys, std::span<const float> images) = 0;
    virtual void commit() = 0;
  };
  virtual std::unique_ptr<Loading> begin_load() = 0;
};

/// Rows of weights and optimizer state by any 64-bit key, in this process: one kind of table is one
/// file of ps/tables/. Rows change only in apply, assign, shrink and loads: a row is made when its
/// key is first applied, if spec.entry admits it, with weights that depend on (seed, table name,
/// key) only. Keys of a call are different from each other (row_sums.h adds up those that are not).
/// Sizes and steps that do not fit throw DataError and change nothing.
///
/// Thread safety: full, for different tickets. Each row is whole at any time; a call beside another
/// may see some of its rows changed and others not yet.
class RowTable {
 public:
  explicit RowTable(TableSpec spec) : recipe_(std::move(spec)) {}
  virtual ~RowTable() = default;
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  const RowRecipe& recipe() const { return recipe_; }
  const TableSpec& spec() const { return recipe_.spec(); }

  /// Announces which rows will be read or changed, so that a table can start fetching cold ones.
  virtual void locate(std::span<const Key> keys, const RowColumns& columns, RowPart part,
                      Ticket& ticket) = 0;
  /// Whether read and apply can run without waiting. Readiness may be lost: ask before each.
  virtual bool ready(Ticket& ticket) = 0;
  /// For a ticket that is not ready: runs `task` once, on any thread, when it is.
  virtual void when_ready(Ticket& ticket, std::function<void()> task) = 0;
  /// Writes the weights of the ticket's part, the row of keys[i] at i * dim.
  virtual void read(Ticket& ticket, Purpose purpose, std::span<float> rows) = 0;
  /// One rule step for each row of the part, as step number `step` (the first is 1). The gradient
  /// of keys[i] is at i * dim.
  virtual void apply(Ticket& ticket, std::span<const float> grads, uint64_t step) = 0;
  /// Sets weights, and makes missing rows whatever the entry says. May wait.
  virtual void assign(std::span<const Key> keys, std::span<const float> rows) = 0;
  /// Adds one to every row's unseen count, which apply and assign set to 0, and erases rows (and
  /// counts of keys not yet admitted) that reach `unseen`; returns how many rows. Throws
  /// ConfigError unless spec.track_unseen.
  virtual size_t shrink(uint32_t unseen) = 0;
  virtual size_t size() const = 0;  // rows
  virtual RowImages& images() = 0;

 private:
  RowRecipe recipe_;
};

/// By spec.store. Throws ConfigError that names the nearest kind, or says that rows on the disk
/// need a home.
std::unique_ptr<RowTable> make_row_table(const TableSpec& spec, const TableHome& home = {});

/// A file of tables/: its name is the kind's. `settings` is spec.store as a call.
using TablePlugin = Plugin<std::unique_ptr<RowTable>(const TableSpec& spec, const Call& settings,
                                                     const TableHome& home)>;
std::vector<TablePlugin> builtin_tables();

// For threads that may wait:

/// Returns when the ticket is ready.
void await(RowTable& table, Ticket& ticket);
/// locate, await and read in one.
void read_rows(RowTable& table, std::span<const Key> keys, const RowColumns& columns,
               Purpose purpose, std::span<float> rows, Ticket& ticket);
inline void read_rows(RowTable& table, std::span<const Key> keys, Purpose purpose,
                      std::span<float> rows, Ticket& ticket) {
  read_rows(table, keys, {}, purpose, rows, ticket);
}
/// await and apply in one.
void apply_located(RowTable& table, Ticket& ticket, std::span<const float> grads, uint64_t step);
/// The weights that inference sees. For tests and tools; hot paths keep their ticket.
std::vector<float> peek(RowTable& table, std::span<const Key> keys);

}  // namespace argosy::ps

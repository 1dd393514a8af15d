#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/ps/arena.h"
#include "argosy/ps/entry.h"
#include "argosy/ps/gradient.h"
#include "argosy/ps/initializer.h"
#include "argosy/ps/key_batch.h"
#include "argosy/ps/row_store.h"
#include "argosy/ps/rule.h"
#include "argosy/ps/schedule.h"
#include "argosy/ps/table.h"

namespace argosy {

class RunningHash;

/// Rows of spec.dim floats by any 64-bit key, weights and optimizer state together. A row is made
/// when its key is first pulled or pushed (if spec.entry admits it), with weights that depend on
/// (seed, table name, key) only. Rows change only when they are seen: Adam takes its bias
/// correction from the step of the push and lets the moments of other rows rest (lazy mode). Sizes
/// and steps that do not fit throw DataError and change nothing.
///
/// Thread safety: full. Keys are spread over spec.shards shards with a lock each; a call locks one
/// shard at a time, so each row is whole, but a call that runs beside another may see it half done.
class SparseTable final : public Table {
 public:
  explicit SparseTable(TableSpec spec);
  ~SparseTable() override;

  /// What may come with the keys of a pull, one value per key or none.
  struct PullColumns {
    std::span<const uint32_t> counts;  // occurrences, for count_filter; none: 1 each
  };
  /// The same of a push, for show_click.
  struct PushColumns {
    std::span<const float> show, click;  // none: 1 and 0 each
  };

  /// A key may come more than once: the same as one pull after the other.
  void pull(std::span<const Key> keys, std::span<float> rows) override { pull(keys, rows, {}); }
  void pull(std::span<const Key> keys, std::span<float> rows, const PullColumns& columns);
  /// The keys of a pull and where their rows are, so that a push need not search for them again.
  /// Its memory is used again by the next pull. Thread safety: none.
  class Located {
   public:
    std::span<const Key> keys() const { return keys_; }

   private:
    friend SparseTable;
    std::vector<Key> keys_;
    KeyBatch batch_;
    std::vector<float*> rows_;          // by place in batch_, null: not admitted
    std::vector<uint64_t> generation_;  // of each shard when its rows were found
  };
  /// pull() that remembers. Each key may come once only; the same holds for its push.
  void pull(std::span<const Key> keys, std::span<float> rows, const PullColumns& columns,
            Located& located);
  /// For inference: keys without a row give zeros, nothing is made or counted.
  void pull_existing(std::span<const Key> keys, std::span<float> rows) const;
  /// The gradients of a key that comes more than once are added up, in order, for one rule step.
  void push(std::span<const Key> keys, std::span<const float> grads, uint64_t step) override {
    push(keys, grads, step, {});
  }
  void push(std::span<const Key> keys, std::span<const float> grads, uint64_t step,
            const PushColumns& columns);
  /// push() of the keys of a pull. Rows may have been erased or made since.
  void push(Located& located, std::span<const float> grads, uint64_t step,
            const PushColumns& columns = {});
  /// Makes missing rows whatever the entry says. Of equal keys the last one counts.
  void assign(std::span<const Key> keys, std::span<const float> rows) override;
  size_t size() const override;
  /// Of all rows, in order.
  std::vector<Key> keys() const { return sorted_keys(Section::rows); }
  /// Rows in the order of their keys: equal tables give equal bytes, whatever their shards. Beside
  /// other calls each row is saved whole, but not all at the same moment.
  void save(ByteSink& out) const override;
  void load(ByteSource& in) override;
  /// A table that was saved in parts, each key in one of them; takes the keys that `keep` wants.
  /// Rows that were saved without optimizer state begin a new one.
  void load(std::span<ByteSource> parts, FunctionRef<bool(Key)> keep);
  /// The same of parts that need not be in memory together: `give` takes each along, by one call of
  /// what it is called with, until it returns false.
  using TakePart = FunctionRef<void(ByteSource&)>;
  void load_parts(FunctionRef<bool(TakePart)> give, FunctionRef<bool(Key)> keep);

  /// Adds one to every row's unseen count, which a pull or a push sets to 0, and erases rows (and
  /// counts of keys not yet admitted) that reach `unseen`; returns how many rows. Throws
  /// ConfigError unless spec.track_unseen.
  size_t shrink(uint32_t unseen);
  struct Scores {
    float show, click;
  };
  /// Sums of the side columns of a row; nothing if there is no row or the entry is no show_click.
  std::optional<Scores> scores(Key key) const;
  const TableSpec& spec() const { return spec_; }

 private:
  /// Keys that have rows, and keys still being counted: one float, their count.
  enum class Section : uint8_t { rows, counted };
  struct Stores {
    Stores(const SparseTable& table, std::shared_ptr<Arena> memory);
    RowStore& operator[](Section section) { return section == Section::rows ? rows : *counted; }

    std::shared_ptr<Arena> arena;
    RowStore rows;
    std::optional<RowStore> counted;  // of a count_filter only
  };
  struct alignas(64) Shard {
    explicit Shard(std::unique_ptr<Stores> first) : stores(std::move(first)) {}
    mutable Mutex mutex;
    std::unique_ptr<Stores> stores GUARDED_BY(mutex);
    uint64_t generation GUARDED_BY(mutex) = 0;  // changes when addresses of rows do
  };
  struct Scratch;
  class Borrowed;

  bool counting() const { return entry_.kind() == Entry::Kind::count_filter; }
  bool scoring() const { return entry_.kind() == Entry::Kind::show_click; }
  size_t floats(Section section) const;
  void check_rows(std::span<const Key> keys, size_t floats) const;
  void check_column(std::span<const Key> keys, size_t values, const char* name) const;
  template <class Use>
  void each_row(std::span<const Key> keys, size_t floats, const Use& use) const;
  struct Part {
    size_t number;  // of the shard
    uint64_t generation;
    Stores& stores;
    std::span<Probe> probes;
  };
  template <class Use>
  void each_shard(KeyBatch& batch, size_t first, const Use& use) const;
  void pull_row(Stores& stores, const Probe& probe, Key key, uint32_t count, float*& row,
                float* to) const;
  Update update_of(uint64_t step) const;
  struct RowGradients {
    std::span<const Probe> probes;
    std::span<const float* const> grads;
    std::span<float*> rows;  // null: to be found or made
  };
  void apply(Stores& stores, const RowGradients& part, std::span<const Key> keys,
             const Update& update, std::vector<float>& adjusted) const;
  void add_scores(std::span<const Key> keys, const PushColumns& columns);
  float* make_row(Stores& stores, Key key, uint64_t hash) const;
  float* row_for_pull(Stores& stores, Key key, uint64_t hash, uint32_t count) const;
  float* row_for_push(Stores& stores, Key key, uint64_t hash) const;
  static size_t age(RowStore& store, size_t unseen_at, uint32_t unseen);
  std::vector<Key> sorted_keys(Section section) const;
  void save_section(Section section, ByteSink& out) const;
  using Fresh = std::vector<std::unique_ptr<Stores>>;
  void load_part(ByteSource& in, FunctionRef<bool(Key)> keep, Fresh& fresh) const;
  void load_section(Section section, size_t width, ByteSource& in, RunningHash& sum,
                    FunctionRef<bool(Key)> keep, Fresh& fresh) const;

  TableSpec spec_;
  std::unique_ptr<Rule> rule_;
  Schedule schedule_;
  GradientPolicy policy_;
  Initializer initializer_;
  Entry entry_;
  uint64_t row_seed_, entry_seed_;
  size_t state_size_;
  // A row: its unseen count if tracked, show and click if scored, weights, state.
  size_t scores_at_, weights_at_;
  mutable std::deque<Shard> shards_;
  mutable Mutex scratch_mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> scratch_ GUARDED_BY(scratch_mutex_);
  mutable size_t scratches_made_ GUARDED_BY(scratch_mutex_) = 0;
};

}  // namespace argosy

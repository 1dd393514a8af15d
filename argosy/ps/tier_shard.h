#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/function_ref.h"
#include "argosy/base/mutex.h"
#include "argosy/ps/tier_rows.h"

namespace argosy::ps {

/// One shard of a table whose rows are in memory and on the disk, and the rules of who waits for
/// what: files are read and written without the lock, by whoever needs them. Thread safety: full.
class TierShard {
 public:
  /// The recipe and the files must outlive it.
  TierShard(const RowRecipe& recipe, TierFiles& files, const TierSizes& sizes);
  ~TierShard();
  TierShard(const TierShard&) = delete;
  TierShard& operator=(const TierShard&) = delete;

  /// Some keys and their slots, kAbsent for those without a row; what is made goes there too.
  using Use =
      FunctionRef<void(TierRows& rows, std::span<const Probe> probes, std::span<uint32_t> slots)>;
  /// Calls each() until it has seen all probes once each, some at a time, in any order, under the
  /// lock. It may make as many rows as it is given. Reads the rows that are not in memory. Hints
  /// are slots + 1, and are corrected.
  void use(std::span<const Probe> probes, std::span<const Key> keys, std::span<uint64_t> hints,
           Use each);

  /// Appends what has to be read for these keys, at most `at_most` records.
  void find_cold(std::span<const Probe> probes, std::span<const Key> keys,
                 std::span<uint64_t> hints, size_t at_most, std::vector<TierRead>& reads);
  /// Reads them and puts the rows into memory, for as long as there are no more wanted ones.
  void fetch(std::span<TierRead> reads);
  /// A row that was wanted since this was `before` is still in memory.
  bool keeps_since(uint64_t before) const;
  uint64_t turns() const { return turns_; }
  /// Records that are worth reading at once.
  size_t most_fetched() const;
  void set_memory(size_t bytes);
  /// Rows for which there is no memory any more go at once, not only as others come.
  void fit();
  /// Rows that fit into memory beside the index.
  size_t room();

  size_t size(Section section) const;
  size_t shrink(uint32_t unseen);
  /// Images of those that are there, with the position of their key.
  void read(Section section, std::span<const Probe> probes, std::span<const Key> keys,
            FunctionRef<void(size_t position, const float* image)> found);
  /// Visits up to `at_most` images from the hash `from` on, and sets that to the next; true: that
  /// was all.
  bool walk(Section section, uint64_t& from, size_t& at_most,
            FunctionRef<void(Key, const float* image)> visit);

 private:
  struct Compaction {
    uint32_t segment = 0;
    std::shared_ptr<const TierSegment> file;
    uint32_t next = 0;
  };
  // These let go of the lock while they read or write.
  void make_room(size_t slots) REQUIRES(mutex_);
  void flush() REQUIRES(mutex_);
  void compact() REQUIRES(mutex_);
  void compact_some(size_t rows) REQUIRES(mutex_);
  void tidy();

  size_t find_all(std::span<const Probe> probes, std::span<const Key> keys,
                  std::span<uint64_t> hints, std::span<Probe> met, std::span<uint32_t> slots,
                  std::span<uint32_t> at, std::vector<uint32_t>& cold, std::vector<TierRead>& reads)
      REQUIRES(mutex_);
  [[noreturn]] void refuse(size_t slots) REQUIRES(mutex_);

  const RowRecipe& recipe_;
  TierFiles& files_;
  const TierSizes sizes_;
  const size_t record_bytes_;
  mutable Mutex mutex_;
  TierRows rows_ GUARDED_BY(mutex_);
  CondVar written_;
  std::optional<Compaction> compaction_ GUARDED_BY(mutex_);
  bool compacting_ GUARDED_BY(mutex_) = false;
  uint64_t told_live_ GUARDED_BY(mutex_) = 0;  // records, to the metrics
  std::atomic<uint64_t> turns_ = 0, slots_ = 0;
};

}  // namespace argosy::ps

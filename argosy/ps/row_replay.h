#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/base/thread.h"
#include "argosy/ps/shard.h"

namespace argosy::ps {

/// Puts the rows of a journal into the tables while its next ones are read, in as many threads as
/// are given, each with its part of every table; all see the rows in the order in which they were
/// added, so the last image of a row counts. Small journals need no threads. Thread safety: none.
class RowReplay {
 public:
  RowReplay(Shard& shard, size_t threads);
  /// Drops what is not put yet.
  ~RowReplay();
  RowReplay(const RowReplay&) = delete;
  RowReplay& operator=(const RowReplay&) = delete;

  /// Keys, then as many images, as bytes that may change when this returns.
  void add(size_t table, Section section, size_t rows, std::span<const std::byte> bytes);
  /// Returns when all that was added is in the tables; before anything else is done to them.
  void finish();

 private:
  /// Rows of one table, on their way to all threads.
  struct Page {
    size_t table = 0;
    Section section = Section::rows;
    std::vector<Key> keys = {};
    std::vector<float> images = {};
    size_t left = 0;  // threads that have not put their part
  };
  static constexpr size_t kPages = 6;                  // under way, each of some MB
  static constexpr size_t kInline = size_t{32} << 20;  // bytes without threads

  void fill(Page& page, size_t table, Section section, size_t rows,
            std::span<const std::byte> bytes) const;
  void run(size_t part, const std::stop_token& stop);
  void put_part(const Page& page, size_t part, std::vector<Key>& keys, std::vector<float>& images);

  Shard& shard_;
  const size_t parts_;
  size_t added_ = 0;  // bytes
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::unique_ptr<Page>> pages_ GUARDED_BY(mutex_);  // those under way
  std::vector<std::unique_ptr<Page>> spare_ GUARDED_BY(mutex_);
  uint64_t first_ GUARDED_BY(mutex_) = 0;  // the number of the first of them
  std::vector<Thread> threads_;            // last, so that they end first
};

}  // namespace argosy::ps

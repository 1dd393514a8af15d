#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "argosy/base/mutex.h"

namespace argosy::ps {

/// Memory for tables: zeroed pieces that never move and live as long as the arena, on huge pages
/// where the system has them (the first mapping excepted, so that a small table stays small).
/// Pages not yet handed out are not resident. Thread safety: full.
///
/// Asking for huge pages when memory is first touched may stop the caller for tens of milliseconds
/// while the system tidies up its own; so the pages are small at first, and a thread of the arena
/// turns them into huge ones while nothing grows.
class Arena {
 public:
  static constexpr size_t kAlignment = 64;  // bytes: a cache line

  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Aligned to kAlignment; throws std::bad_alloc.
  std::byte* take(size_t bytes);

 private:
  struct Mapping {
    std::byte* start;
    size_t size;
  };
  class Collapser;

  void map(size_t bytes) REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<Mapping> mappings_ GUARDED_BY(mutex_);
  std::byte* next_ GUARDED_BY(mutex_) = nullptr;
  size_t left_ GUARDED_BY(mutex_) = 0;
  std::byte* small_ GUARDED_BY(mutex_) = nullptr;  // from here on pages are small; null: no matter
  std::unique_ptr<Collapser> collapser_ GUARDED_BY(mutex_);
};

}  // namespace argosy::ps

#pragma once

#include <cstddef>
#include <vector>

#include "argosy/base/mutex.h"

namespace argosy {

/// Memory for tables: zeroed pieces that never move and live as long as the arena, on huge pages
/// where the system has them (the first mapping excepted, so that a small table stays small).
/// Pages not yet handed out are not resident. Thread safety: full.
class Arena {
 public:
  static constexpr size_t kAlignment = 64;  // bytes: a cache line

  Arena() = default;
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
  void map(size_t bytes) REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<Mapping> mappings_ GUARDED_BY(mutex_);
  std::byte* next_ GUARDED_BY(mutex_) = nullptr;
  size_t left_ GUARDED_BY(mutex_) = 0;
};

}  // namespace argosy

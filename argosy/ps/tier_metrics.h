#pragma once

#include <atomic>
#include <memory>

#include "argosy/watch/metrics.h"

namespace argosy::ps {

/// Counters of all tables of a process whose rows are in memory and on the disk. Thread safety:
/// full.
struct TierMetrics {
  /// None: in a registry of its own.
  explicit TierMetrics(std::shared_ptr<Metrics> of_process = {});

  void add_live(int64_t bytes) {
    live_bytes.set(static_cast<double>(live.fetch_add(bytes) + bytes));
  }

  std::shared_ptr<Metrics> metrics;
  Counter &hits, &misses;               // rows
  Counter &read_bytes, &written_bytes;  // of the disk
  Gauge& live_bytes;                    // records on the disk that are needed
  std::atomic<int64_t> live = 0;
};

}  // namespace argosy::ps

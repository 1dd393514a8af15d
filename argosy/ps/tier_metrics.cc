#include "argosy/ps/tier_metrics.h"

#include <utility>

namespace argosy::ps {

TierMetrics::TierMetrics(std::shared_ptr<Metrics> of_process)
    : metrics(of_process != nullptr ? std::move(of_process) : std::make_shared<Metrics>()),
      hits(metrics->counter({"argosy_tier_hits_total", "Rows of batches found in memory"})),
      misses(metrics->counter({"argosy_tier_misses_total", "Rows of batches read from the disk"})),
      read_bytes(metrics->counter({"argosy_tier_read_bytes_total", "Bytes of rows read"})),
      written_bytes(metrics->counter({"argosy_tier_written_bytes_total", "Bytes of rows written"})),
      live_bytes(metrics->gauge({"argosy_tier_live_bytes", "Bytes of rows on the disk"})) {}

}  // namespace argosy::ps

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace argosy {

/// When gradients are summed: while backward still runs, or after it. automatic: while it runs,
/// unless all ranks are on one host that has no core to spare.
enum class Overlap : uint8_t { automatic, always, never };
enum class GradientScale : uint8_t { mean, sum };
/// Rows are either replicated on every rank, or each is on the rank that owns its key.
enum class EmbeddingMode : uint8_t { replicated, sharded };
/// Throws ConfigError that names the setting.
EmbeddingMode parse_embedding_mode(std::string_view text, std::string_view setting);
const char* name(EmbeddingMode mode);

/// For ranks that train together.
struct CollectiveStrategy {
  GradientScale scale = GradientScale::mean;
  /// The bits of one process that accumulates the batches of all ranks.
  bool deterministic = false;
  bool fuse = true;      // false: one call for each parameter's gradient
  double bucket_mb = 0;  // gradients that are summed in one call; 0: chosen by their sizes
  Overlap overlap = Overlap::automatic;
  std::string wire = "f32";  // f32, bf16 or f16: what gradients of parameters are sent as
  EmbeddingMode embedding = EmbeddingMode::replicated;
  uint64_t check_every = 100;  // steps between two comparisons of all ranks' values; 0: never
  /// Sums inside of hosts first, then between hosts.
  bool hierarchical = false;
  int ranks_per_host = 0;        // that hierarchical sums expect; 0: any number
  bool sync_batch_norm = false;  // every batch_norm takes its statistics from all ranks' batches
};

/// How to distribute; what the seeds call DistributedStrategy and runner settings.
struct Strategy {
  std::string mode = "local";   // a file of communicators/
  int threads = 1;              // compute threads, each with its own batch
  int accumulate = 1;           // local and collective: batches whose gradients make one step
  bool accumulate_mean = true;  // collective: false: the sum of these gradients, not their mean
  // With servers:
  int max_merge = 1;     // async: gradients that are added up for one push
  int send_queue = 16;   // async: exchanges under way; a thread that has sent more waits for one
  int geo_step = 100;    // geo: batches between two exchanges of differences
  bool geo_mean = true;  // geo: differences are divided by the number of workers
  CollectiveStrategy collective = {};
};

}  // namespace argosy

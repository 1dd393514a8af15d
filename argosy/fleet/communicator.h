#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/data/batch.h"
#include "argosy/fleet/overlap.h"
#include "argosy/fleet/plan.h"
#include "argosy/fleet/table_store.h"

namespace argosy {

class Group;
class PsClient;
class RankSum;
class ShardedStore;

/// What a batch is fetched for: inference makes no rows and sees those that are missing as zeros.
enum class Purpose : uint8_t { training, inference };

/// A pass over the data, as a worker goes through it.
enum class Pass : uint8_t {
  loaded,       // before all of them: the first worker has loaded a model
  begin,        // before its first batch
  thread_done,  // one of Strategy::threads has no batch any more
  end,          // after its last one, when all threads are done
  leave,        // there will be no other pass
};

/// Brings parameters to a batch and takes its gradients away. Every mode of training is a file
/// of communicators/ behind this interface. Thread safety: up to Strategy::threads threads, each
/// with batches of its own, may prepare, fetch, deliver and commit.
class Communicator {
 public:
  virtual ~Communicator() = default;
  /// How many batches should be prepared ahead of the one that is computed.
  int lookahead() const { return lookahead_; }
  /// The next pass is at least the one behind so many, in the count that all workers share.
  void skip_passes(uint64_t passes) { passes_ = std::max(passes_, passes); }
  /// The number, among the batches of all ranks, of this one's batch of a step; the first is 1.
  uint64_t batch_number(uint64_t step) const { return (step - 1) * ranks_ + rank_ + 1; }
  /// Where a table's gradient should be computed to, so that deliver need not copy it; an empty
  /// tensor: anywhere.
  Tensor place_of(size_t table) const { return table < places_.size() ? places_[table] : Tensor{}; }
  /// For ops that need the batches of other ranks; null: there are none.
  RankSum* rank_sum() const { return rank_sum_; }
  /// Of ranks that each have a part of the rows, which nobody can save or read alone; else null.
  ShardedStore* sharded() const { return sharded_; }
  /// Between passes: so many threads compute from now on, at most Strategy::threads.
  virtual void set_threads(int threads) = 0;
  /// The batch has been read and will be fetched after those prepared before it.
  virtual void prepare(Batch& batch) = 0;
  /// Puts parameters, states and the rows of the batch's keys into batch.feeds; may block.
  virtual void fetch(Batch& batch, Purpose purpose = Purpose::training) = 0;
  /// A gradient, or a state's next value, is final. The tensor is good until commit returns.
  virtual void deliver(Batch& batch, const Edge& edge, const Tensor& value) = 0;
  /// Every value of the batch has been delivered.
  virtual void commit(Batch& batch) = 0;
  /// Returns once everything committed has been applied.
  virtual void drain() = 0;
  virtual void pass(Pass event) = 0;
  virtual TableStore& store() = 0;
  /// What a user may want to know about the last pass, line by line.
  virtual std::vector<std::string> notes() = 0;

 protected:
  explicit Communicator(int lookahead) : lookahead_(lookahead) {}
  uint64_t next_pass() { return ++passes_; }
  void set_rank(int rank, int ranks) {
    rank_ = static_cast<uint64_t>(rank);
    ranks_ = static_cast<uint64_t>(ranks);
  }
  void set_places(std::vector<Tensor> by_table) { places_ = std::move(by_table); }
  void set_rank_sum(RankSum* rank_sum) { rank_sum_ = rank_sum; }
  void set_sharded(ShardedStore* store) { sharded_ = store; }

 private:
  int lookahead_;
  uint64_t passes_ = 0, rank_ = 0, ranks_ = 1;
  std::vector<Tensor> places_;
  RankSum* rank_sum_ = nullptr;
  ShardedStore* sharded_ = nullptr;
};

enum class GradientScale : uint8_t { mean, sum };
/// Where the rows of tables are: every rank has all, or each has those of its keys.
enum class EmbeddingMode : uint8_t { replicated, sharded };
/// Throws ConfigError that names the setting.
EmbeddingMode parse_embedding_mode(std::string_view text, std::string_view setting);
const char* name(EmbeddingMode mode);

/// Of ranks that train together.
struct CollectiveStrategy {
  GradientScale scale = GradientScale::mean;
  /// The bits of one process that accumulates the batches of all ranks.
  bool deterministic = false;
  bool fuse = true;      // false: the gradient of each parameter is summed by itself
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
  int threads = 1;              // that compute, each on a batch of its own
  int accumulate = 1;           // local and collective: batches whose gradients make one step
  bool accumulate_mean = true;  // collective: false: the sum of these gradients, not their mean
  // Of servers:
  int max_merge = 1;     // async: gradients that are added up for one push
  int send_queue = 16;   // async: exchanges that may be under way
  int geo_step = 100;    // geo: batches between two exchanges of differences
  bool geo_mean = true;  // geo: differences are divided by the number of workers
  CollectiveStrategy collective = {};
};

/// What a communicator talks to.
struct Wires {
  std::shared_ptr<PsClient> servers = {};
  std::shared_ptr<Group> group = {};  // of ranks that train together
};

/// The plan outlives the communicator. Throws ConfigError listing the known modes.
std::unique_ptr<Communicator> make_communicator(const Plan& plan, const Strategy& strategy,
                                                const Wires& wires = {});

}  // namespace argosy

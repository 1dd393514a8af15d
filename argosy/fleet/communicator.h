#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "argosy/data/batch.h"
#include "argosy/fleet/plan.h"
#include "argosy/fleet/table_store.h"

namespace argosy {

class PsClient;

/// What a batch is fetched for: inference makes no rows and sees those that are missing as zeros.
enum class Purpose : uint8_t { training, inference };

/// A pass over the data, as a worker goes through it.
enum class Pass : uint8_t {
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

 private:
  int lookahead_;
  uint64_t passes_ = 0;
};

/// How to distribute; what the seeds call DistributedStrategy and runner settings.
struct Strategy {
  std::string mode = "local";  // a file of communicators/
  int threads = 1;             // that compute, each on a batch of its own
  int accumulate = 1;          // local: batches whose mean gradient makes one step
  // Of servers:
  int max_merge = 1;     // async: gradients that are added up for one push
  int send_queue = 16;   // async: exchanges that may be under way
  int geo_step = 100;    // geo: batches between two exchanges of differences
  bool geo_mean = true;  // geo: differences are divided by the number of workers
};

/// What a communicator talks to.
struct Wires {
  std::shared_ptr<PsClient> servers = {};
};

/// The plan outlives the communicator. Throws ConfigError listing the known modes.
std::unique_ptr<Communicator> make_communicator(const Plan& plan, const Strategy& strategy,
                                                const Wires& wires = {});

}  // namespace argosy

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argosy/data/batch.h"
#include "argosy/fleet/plan.h"

namespace argosy {

struct NamedTensor {
  std::string name;
  Tensor value;
};

class SparseTable;

/// What a batch is fetched for: inference makes no rows and sees those that are missing as zeros.
enum class Purpose : uint8_t { training, inference };

/// Brings parameters to a batch and takes its gradients away. Every mode of training is a file
/// of communicators/ behind this interface. Thread safety: up to Strategy::threads threads, each
/// with a batch of its own, may fetch, deliver and commit.
class Communicator {
 public:
  virtual ~Communicator() = default;
  /// Puts parameters, states and the rows of the batch's keys into batch.feeds; may block.
  virtual void fetch(Batch& batch, Purpose purpose = Purpose::training) = 0;
  /// A gradient, or a state's next value, is final. The tensor is good until commit returns.
  virtual void deliver(Batch& batch, const Edge& edge, const Tensor& value) = 0;
  /// Every value of the batch has been delivered.
  virtual void commit(Batch& batch) = 0;
  /// Returns once everything committed has been applied.
  virtual void drain() = 0;
  /// All that a later run needs to go on from here, over live memory: parameters and states by
  /// their names, then optimizer state and counters as "name@what". Only between batches.
  virtual std::vector<NamedTensor> persistables() = 0;
  /// The sparse tables that live in this process, the same care applies.
  virtual std::vector<SparseTable*> sparse_tables() = 0;
};

/// How to distribute; what the seeds call DistributedStrategy and runner settings.
struct Strategy {
  std::string mode = "local";  // a file of communicators/
  int threads = 1;             // that compute, each on a batch of its own
};

/// The plan outlives the communicator. Throws ConfigError listing the known modes.
std::unique_ptr<Communicator> make_communicator(const Plan& plan, const Strategy& strategy);

}  // namespace argosy

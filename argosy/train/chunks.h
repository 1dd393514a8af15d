#pragma once

#include <vector>

#include "argosy/base/thread_team.h"
#include "argosy/data/batch.h"
#include "argosy/graph/executor.h"
#include "argosy/modes/communicator.h"
#include "argosy/train/finite_check.h"
#include "argosy/train/metric_tally.h"

namespace argosy {

/// Computes a batch in a fixed number of chunks, on any number of threads: gradients and metrics
/// are added in the order of the chunks, so the bits do not depend on the threads. The loss is
/// taken as a mean over instances: a chunk's gradient counts by its share of the batch, and so
/// does its next value of a state.
class ChunkedCompute {
 public:
  /// The plan outlives this.
  ChunkedCompute(const Plan& plan, const Measures& measures, size_t chunks, size_t threads,
                 const Executor::Options& options);

  /// The batch has been fetched. Delivers to its lane, which may commit afterwards.
  void run(Batch& batch, Lane& lane, const RunSeed& seed, MetricTally& metrics,
           FiniteCheck& finite);

 private:
  struct Chunk {
    size_t begin = 0, end = 0;     // instances
    Feeds feeds;                   // parts of the batch's
    std::vector<Tensor> offsets;   // of pooled lookups, counted from the chunk's first id
    std::vector<Tensor> values;    // by edge: gradients and next states
    std::vector<Tensor> measured;  // by variable of the measures
    size_t size() const { return end - begin; }
  };

  void take_part(const Batch& batch, Chunk& chunk) const;
  void compute(Chunk& chunk, Executor& executor, const RunSeed& seed) const;
  void add_up(size_t edge, size_t instances);

  const Plan& plan_;
  std::vector<VarId> measured_;
  std::vector<Chunk> chunks_;
  std::vector<Executor> executors_;  // by thread
  ThreadTeam team_;
};

}  // namespace argosy

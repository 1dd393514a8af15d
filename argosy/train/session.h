#pragma once

#include <span>
#include <vector>

#include "argosy/data/feed_batcher.h"
#include "argosy/train/trainer.h"

namespace argosy {

/// Runs a trainer's program on arrays, as Executor.run of Paddle does, for the values of any of its
/// variables. The trainer outlives it. Not thread-safe.
class Session {
 public:
  explicit Session(Trainer& trainer, SlotLimits limits = {})
      : trainer_(trainer), batcher_(trainer.plan().layout, std::move(limits)) {}

  /// One batch of training (Purpose::training) or of inference. The values are copies. Throws
  /// ConfigError naming the variable that is missing or does not fit.
  std::vector<Tensor> run(const FedByName& feeds, std::span<const VarId> fetch,
                          ps::Purpose purpose);

 private:
  Trainer& trainer_;
  FeedBatcher batcher_;
  Batch batch_;
};

}  // namespace argosy

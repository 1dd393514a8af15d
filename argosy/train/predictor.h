#pragma once

#include <string>

#include "argosy/base/env.h"
#include "argosy/data/batch.h"
#include "argosy/graph/executor.h"
#include "argosy/plan/plan.h"

namespace argosy {

/// Runs an exported model. Thread safety: one thread at a time; load one per thread.
class Predictor {
 public:
  /// From `dir`/inference.argosy.
  Predictor(Env& env, const std::string& dir);

  /// Feeds are the program's inputs by name; the answer holds its outputs by name, good until the
  /// next call.
  Feeds run(const Feeds& inputs);
  /// Runs a batch that a Batcher made by layout(). Keys unknown to the model give zeros.
  Feeds run(const Batch& batch);

  const BatchLayout& layout() const { return layout_.layout; }
  const Program& program() const { return executor_.program(); }

 private:
  Predictor(struct SavedModel model, const std::string& path);

  struct Rows {
    Tensor keys, rows;  // in the order of the keys
  };

  Feeds values_;
  std::map<std::string, Rows> tables_;
  Executor executor_;
  ProgramLayout layout_;
};

}  // namespace argosy

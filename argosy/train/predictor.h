#pragma once

#include <string>

#include "argosy/base/env.h"
#include "argosy/graph/executor.h"

namespace argosy {

/// Runs an exported model. Thread safety: one thread at a time; load one per thread.
class Predictor {
 public:
  /// From `dir`/inference.argosy.
  Predictor(Env& env, const std::string& dir);

  /// Feeds are the program's inputs by name; the answer holds its outputs by name, good until the
  /// next call.
  Feeds run(const Feeds& inputs);

  const Program& program() const { return executor_.program(); }

 private:
  Predictor(struct SavedModel model, const std::string& path);

  Feeds values_;
  Executor executor_;
};

}  // namespace argosy

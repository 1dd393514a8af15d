#pragma once

#include <functional>
#include <string>
#include <vector>

#include "argosy/train/trainer.h"

namespace argosy {

struct FetchOptions {
  std::vector<std::string> fetch_list = {};  // metrics of the model by name, such as "auc"
  std::vector<std::string> fetch_info = {};  // what to call each; empty: its name
  uint64_t print_period = 100;               // steps
  bool debug = false;                        // also say how long reading and computing took
  /// Takes each line; none: standard output.
  std::function<void(const std::string&)> print = {};
  std::vector<ProgressObserver*> observers = {};
};

/// One pass over the data, as Executor.train_from_dataset of Paddle: prints the fetched metrics
/// every print_period steps. Throws ConfigError for a metric that the model does not have.
Progress train_from_dataset(Trainer& trainer, Dataset& data, const FetchOptions& options = {});

}  // namespace argosy

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/data/dataset.h"
#include "argosy/fleet/communicator.h"
#include "argosy/graph/executor.h"
#include "argosy/train/progress.h"

namespace argosy {

/// What a model function gives back.
struct ModelOutputs {
  Var loss;                                               // one number
  std::vector<std::pair<std::string, Var>> metrics = {};  // one number each, a mean over the batch
  std::vector<std::pair<std::string, Var>> predictions = {};  // what an exported model answers
};
/// A model written once: recorded as a static graph, or run eagerly for each batch.
using Model = std::function<ModelOutputs(Builder&)>;

enum class GraphMode : uint8_t { recorded, eager };

struct TrainerOptions {
  Optimizer optimizer = {};
  Strategy strategy = {};
  GraphMode graph = GraphMode::recorded;
  uint64_t seed = 0;       // of first values, of order and of dropout
  bool check_nan = false;  // stop with a DataError at the first NaN, naming its node
};

enum class Next : uint8_t { go_on, stop };

/// Ends fit() when a metric of the test set has not improved for `patience` epochs.
struct EarlyStop {
  std::string metric = "loss";
  bool higher_is_better = false;
  int patience = 3;
};

struct FitOptions {
  int epochs = 1;
  Dataset* test = nullptr;  // evaluated after each epoch
  std::optional<EarlyStop> early_stop = {};
  std::function<Next(const Progress&)> on_step = {};
  /// After each epoch, with the means over the epoch and over the test set.
  std::function<Next(const Progress&, const std::vector<Metric>& test)> on_epoch = {};
  std::FILE* show = stdout;  // where progress goes; null: nowhere
};

/// Drives batches round the loop read -> fetch -> compute -> commit. The same model gives the same
/// bits in both graph modes. Not thread-safe.
class Trainer {
 public:
  Trainer(Env& env, Model model, TrainerOptions options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains; returns how the last epoch ended, its metrics being means over the epoch.
  Progress fit(Dataset& data, const FitOptions& options);
  /// One batch: updates the parameters, returns its loss and metrics in the order of the model.
  std::span<const double> step(Batch& batch);
  /// Means over a data set, in inference mode.
  std::vector<Metric> evaluate(Dataset& data);

  /// Parameters, states, optimizer state and counters; see saved_model.h.
  void save(const std::string& dir);
  void load(const std::string& dir);
  /// The predictions as a program of their own, for Predictor.
  void export_inference(const std::string& dir);

  const Plan& plan() const { return plan_; }

 private:
  void run_recorded(Batch& batch, const RunSeed& seed);
  void run_eager(Batch& batch, const RunSeed& seed);
  const Edge& edge_of(const std::string& variable) const;
  std::vector<Metric> named(std::span<const double> values) const;

  Env& env_;
  Model model_;
  TrainerOptions options_;
  std::vector<std::string> metric_names_;  // "loss", then the model's
  std::vector<VarId> metric_vars_;
  std::vector<std::string> prediction_names_;
  Plan plan_;
  std::unique_ptr<Communicator> communicator_;
  Executor executor_;                       // the training program
  std::unique_ptr<Executor> evaluator_;     // made when first used
  std::vector<const Edge*> edge_by_value_;  // by variable number, null where none
  std::vector<double> values_;              // of the last step
  uint64_t steps_ = 0;
};

}  // namespace argosy

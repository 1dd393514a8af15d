#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/data/dataset.h"
#include "argosy/fleet/communicator.h"
#include "argosy/graph/executor.h"
#include "argosy/train/checkpoint.h"
#include "argosy/train/figures.h"
#include "argosy/train/progress.h"
#include "argosy/watch/activity.h"

namespace argosy {

/// A figure that no mean over batches gives: how predictions [batch, 1] stand to labels.
struct MeterSpec {
  std::string name, meter;  // "auc", "auc(buckets=4096)": meter.h
  Var prediction, label;
  Var group = {};  // i64[batch, 1], for meters by user
};

/// What a model function gives back.
struct ModelOutputs {
  Var loss;  // one number, a mean over the batch; none: the model is only evaluated
  std::vector<std::pair<std::string, Var>> metrics = {};  // one number each, a mean over the batch
  std::vector<MeterSpec> meters = {};
  std::vector<std::pair<std::string, Var>> predictions = {};  // what an exported model answers
};
/// A model written once: recorded as a static graph, or run eagerly for each batch.
using Model = std::function<ModelOutputs(Builder&)>;

enum class GraphMode : uint8_t { recorded, eager };

struct TrainerOptions {
  Optimizer optimizer = {};
  TablesOptions tables = {};
  Strategy strategy = {};
  /// Connects to servers where the mode has any; called once, with the plan.
  std::function<Wires(const Plan&)> connect = {};
  GraphMode graph = GraphMode::recorded;
  uint64_t seed = 0;       // of first values, of order and of dropout
  bool check_nan = false;  // stop with a DataError at the first NaN, naming its node
  /// Above 0: each batch is computed in so many chunks, which strategy.threads threads share, with
  /// the same bits for any number of threads. 0: each thread takes batches of its own.
  int chunks = 0;
  /// The device that recorded programs run on (Executor::Options); none: the processor.
  int device = Executor::kNoDevice;
};

/// A model as a program, with what is measured and asked of it. A server needs its plan only.
struct RecordedModel {
  Plan plan;
  Measures measures;
  std::vector<std::string> prediction_names;
};
RecordedModel record(const Model& model, const TrainerOptions& options);

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
  std::optional<ResumePoint> resume = {};  // go on there, as load() gave it
  /// After steps 1, 1 + on_step_every, ... of each epoch; one thread at a time.
  std::function<Next(const Progress&)> on_step = {};
  uint64_t on_step_every = 1;
  /// Called between steps, with nothing under way, after every so many steps of an epoch.
  std::function<void(const ResumePoint&)> checkpoint = {};
  uint64_t checkpoint_every = 0;
  /// After each epoch, with the means over the epoch and over the test set.
  std::function<Next(const Progress&, const std::vector<Metric>& test)> on_epoch = {};
  /// Called after a step where progress_due says so.
  std::function<void(const Progress&)> on_progress = {};
  std::function<bool()> progress_due = {};
  /// Makes the figures of an epoch those of all workers; the epoch's samples become theirs.
  std::function<void(Figures&)> join = {};
  std::FILE* show = stdout;  // where progress goes; null: nowhere
};

/// Drives batches round the loop read -> fetch -> compute -> commit, with as many threads as the
/// strategy says. The same model gives the same bits in both graph modes. Not thread-safe.
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
  /// The same on the calling thread, for the values of some variables of the plan's program, which
  /// are good until the next call.
  std::vector<Tensor> step(Batch& batch, std::span<const VarId> fetch);
  /// These values in inference mode; nothing is updated.
  std::vector<Tensor> infer(Batch& batch, std::span<const VarId> fetch);
  /// Means over a data set, in inference mode.
  std::vector<Metric> evaluate(Dataset& data);

  /// Between epochs: so many threads compute from now on, at most those of the strategy.
  void set_threads(int threads);
  int most_threads() const { return options_.strategy.threads; }

  /// Leaves the job, where there is one: no other worker waits for this one any more. Nothing may
  /// be trained or saved afterwards.
  void leave();

  /// What the first worker does alone, such as to save or to evaluate; every worker calls it. Those
  /// that have rows which it needs help it, and return when it is done.
  void first_does(bool first, const std::function<void()>& task);

  /// Everything a run needs to go on; see checkpoint.h. Where ranks share the rows of tables
  /// (EmbeddingMode::sharded) these calls are for first_does().
  void save(const std::string& dir, const ResumePoint& resume = {});
  ResumePoint load(const std::string& dir);
  /// The first worker has loaded a model, and every worker calls this. Ranks take it over; where
  /// servers have the parameters there is nothing to do.
  void take_loaded();
  /// Of a save only the states of the model (running means), which live in this process.
  void load_states(const std::string& dir);
  /// The predictions, all or some of them by name, as a program of their own, for Predictor.
  void export_inference(const std::string& dir, std::vector<std::string> predictions = {});

  const Plan& plan() const { return plan_; }
  /// The loss, the model's metrics, its meters.
  const std::vector<std::string>& figure_names() const { return measures_.names; }
  Communicator& communicator() { return *communicator_; }
  /// What it is at; whoever makes it do other things says so here.
  Activity& activity() { return activity_; }

 private:
  /// What a compute thread needs for itself.
  struct Worker {
    explicit Worker(Executor executor) : executor(std::move(executor)) {}
    Executor executor;
    std::vector<std::unique_ptr<Batch>>
        batches;                    // as many as the communicator looks ahead, and one
    std::deque<Batch*> read;        // of these: the first is the next to compute
    double reading = 0;             // seconds that it waited for data
    std::vector<Tensor> row_grads;  // by table: memory for the gradient of a sparse one's rows
  };
  struct Epoch;
  using FetchList = std::vector<VarId>;

  void begin_step(Batch& batch);
  void end_steps();
  void compute(Batch& batch, Worker& worker);
  void step_eager(Batch& batch, Figures& figures);
  void make_room_for_rows(const Batch& batch, Worker& worker) const;
  void step_whole(Batch& batch, Figures& figures);
  bool read_one(Dataset& data, Worker& worker);
  void run_alone(Dataset& data, Worker& worker, Epoch& epoch);
  void compute_next(Worker& worker, Epoch& epoch, std::unique_lock<std::mutex>& lock);
  void run_worker(Dataset& data, Worker& worker, Epoch& epoch);
  void run_epoch(Dataset& data, Epoch& epoch);
  void after_step(Epoch& epoch, size_t instances);
  void checkpoint(const Dataset& data, Epoch& epoch);
  const Edge& edge_of(const std::string& variable) const;
  Executor::Options executor_options() const;
  Executor make_executor(Program program) const;
  uint64_t stored_step();

  Env& env_;
  Model model_;
  TrainerOptions options_;
  Measures measures_;
  std::vector<std::string> prediction_names_;
  Plan plan_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<Worker>> workers_;              // one, or one for each thread
  size_t active_ = 1;                                         // of these: the first ones compute
  std::unique_ptr<class ChunkedCompute> chunks_;              // instead of workers
  std::map<FetchList, std::unique_ptr<Worker>> fetching_;     // made when first used
  std::map<FetchList, std::unique_ptr<Executor>> inferring_;  // made when first used
  std::unique_ptr<Executor> evaluator_;                       // made when first used
  Measures evaluator_measures_;
  std::vector<const Edge*> edge_by_value_;  // by variable number, null where none
  std::optional<Figures> figures_;          // of the last step()
  std::atomic<uint64_t> steps_ = 0;
  bool stepping_ = false;  // a pass is open that consists of step() calls
  Activity activity_;
};

}  // namespace argosy

#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/function_ref.h"
#include "argosy/data/dataset.h"
#include "argosy/graph/executor.h"
#include "argosy/modes/communicator.h"
#include "argosy/train/by_fetch_list.h"
#include "argosy/train/checkpoint.h"
#include "argosy/train/finite_check.h"
#include "argosy/train/metric_tally.h"
#include "argosy/train/progress.h"
#include "argosy/train/trainer_metrics.h"
#include "argosy/watch/activity.h"

namespace argosy {

/// A metric that no mean over batches gives: how predictions [batch, 1] stand to labels.
struct MeterSpec {
  std::string name, meter;  // "auc", "auc(buckets=4096)": meter.h
  Var prediction, label;
  Var group = {};  // i64[batch, 1], for meters by user
};

/// Results of a model function.
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
  GraphMode graph = GraphMode::recorded;
  uint64_t seed = 0;  // of first values, of order and of dropout
  CheckNan check_nan = CheckNan::fail;
  /// Above 0: each batch is computed in so many chunks, which strategy.threads threads share, with
  /// the same bits for any number of threads. 0: each thread takes batches of its own.
  int chunks = 0;
  /// The registry of the process; none: the client's, if the wires have one, else its own.
  std::shared_ptr<Metrics> metrics = {};
  /// The device that recorded programs run on (Executor::Options); none: the processor.
  int device = Executor::kNoDevice;
  /// Bytes that the rows of all tables may take in each process that has them; the rest is on its
  /// disk. 0: no limit.
  uint64_t memory_limit = 0;
  /// Where tables of this process keep rows that are not in memory, for it alone; "": below the
  /// system's folder for temporary files.
  std::string table_folder = {};
  /// Watches every pass and single step; null: nobody.
  std::shared_ptr<ProgressObserver> observer = {};
};

/// A model recorded as a program, with its metrics and predictions. A server needs the plan only.
struct RecordedModel {
  Model model;  // that was recorded, for eager steps
  Plan plan;
  VarId loss;  // none: it is only evaluated
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
  /// After each step, one thread at a time, which it must not hold up; `epoch` counts from 1.
  std::function<void(int epoch)> after_step = {};
  /// Called between steps, with nothing under way, after every so many steps of an epoch.
  std::function<void(const ResumePoint&)> checkpoint = {};
  uint64_t checkpoint_every = 0;
  /// After each epoch, with the means over the epoch and over the test set.
  std::function<Next(const Progress&, const std::vector<Metric>& test)> on_epoch = {};
  std::vector<ProgressObserver*> observers = {};  // of this fit()
  /// Merges the metrics of all workers at the end of an epoch; Progress::samples follows.
  std::function<void(MetricTally&)> join = {};
  std::FILE* show = stdout;  // where progress goes; null: nowhere
};

/// The training loop: read -> fetch -> compute -> commit, on as many threads as the strategy says.
/// The same model gives the same bits in both graph modes. Not thread-safe.
class Trainer {
 public:
  /// Make the plan first, then the wires to whoever holds parts of it, then a trainer.
  Trainer(Env& env, std::unique_ptr<const RecordedModel> recorded, const Wires& wires,
          TrainerOptions options);
  /// Records the model itself, if nobody else needs the plan.
  Trainer(Env& env, const Model& model, const TrainerOptions& options, const Wires& wires = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains; returns how the last epoch ended, its metrics being means over the epoch.
  Progress fit(Dataset& data, const FitOptions& options);
  /// One batch: updates the parameters, returns its loss and metrics in the order of the model.
  std::span<const double> step(Batch& batch);
  /// Likewise, on the calling thread, returning the values of some variables of the plan's program,
  /// valid until the next call.
  std::vector<Tensor> step(Batch& batch, std::span<const VarId> fetch);
  /// Computes the variables in inference mode, without an update.
  std::vector<Tensor> infer(Batch& batch, std::span<const VarId> fetch);
  /// Means over a data set, in inference mode.
  std::vector<Metric> evaluate(Dataset& data);

  /// Between epochs: how many threads compute from now on, at most those of the strategy.
  void set_threads(int threads);
  int most_threads() const { return options_.strategy.threads; }

  /// Leaves the job, if any: no other worker waits for this one any more. Do not train or save
  /// afterwards.
  void leave();

  /// Runs `task` on the first worker alone, such as a save or an evaluation; every worker calls it.
  /// Those whose rows the task needs help, and return when it is done.
  void first_does(bool first, const std::function<void()>& task);

  /// Saves everything a run needs to continue; see checkpoint.h. With sharded rows
  /// (EmbeddingMode::sharded) call save and load inside first_does().
  void save(const std::string& dir, const ResumePoint& resume = {});
  ResumePoint load(const std::string& dir);
  /// Between two steps: asks the servers for their parts of a cut (saved_cut.h) in a folder, and
  /// returns at once what waits for them. Throws ConfigError without servers.
  std::function<SavedCut()> begin_cut(const std::string& dir);
  /// Some time before: lets the servers gather what has changed. Likewise.
  std::function<void()> prepare_cut();
  /// Every worker calls it after the first one has loaded a model: ranks copy that; with servers
  /// there is nothing to do.
  void take_loaded();
  /// Loads only the model's states (running means), which live in this process.
  void load_states(const std::string& dir);
  /// Exports the predictions, all or some by name, as a program for Predictor.
  void export_inference(const std::string& dir, std::vector<std::string> predictions = {});

  const Plan& plan() const { return recorded_->plan; }
  /// The loss, the model's metrics, its meters.
  const std::vector<std::string>& metric_names() const { return recorded_->measures.names; }
  Communicator& communicator() { return *communicator_; }
  /// The sharded store in sharded mode, else null.
  ShardedStore* sharded() { return duties_.sharded; }
  /// What the trainer is doing; callers report what they do in between here too.
  Activity& activity() { return activity_; }
  const Metrics& metrics() const { return *metrics_; }

 private:
  /// A batch and its way round.
  struct Slot {
    Batch batch;
    std::unique_ptr<Lane> lane;
  };
  /// State of one compute thread.
  struct Worker {
    explicit Worker(Executor executor) : executor(std::move(executor)) {}
    Executor executor;
    std::vector<std::unique_ptr<Slot>> slots;  // lookahead() + 1
    std::deque<Slot*> read;                    // of slots: the front is computed next
    double reading = 0;                        // seconds spent waiting for data
    std::vector<Tensor> row_grads;             // by table: memory for the gradient of its rows
  };
  struct Epoch;

  void begin_pass();
  void begin_step(Batch& batch);
  void end_step(size_t instances);
  void end_steps();
  Trained count_batch();
  void run_step(Batch& batch, Lane& lane, FunctionRef<void()> compute);
  void compute(Batch& batch, Lane& lane, Worker& worker);
  void compute_eager(Batch& batch, Lane& lane, std::optional<Builder>& g);
  void make_room_for_rows(const Batch& batch, Worker& worker) const;
  void step_whole(Batch& batch, Lane& lane, MetricTally& metrics);
  bool read_one(Dataset& data, Worker& worker);
  void run_alone(Dataset& data, Worker& worker, Epoch& epoch);
  void end_batch(Worker& worker, Epoch& epoch);
  void run_worker(Dataset& data, Worker& worker, Epoch& epoch);
  void run_pass(Dataset& data, Epoch& epoch);
  void after_step(Epoch& epoch, size_t instances);
  void checkpoint(const Dataset& data, Epoch& epoch);
  const Edge& edge_of(const std::string& variable) const;
  Executor::Options executor_options() const;
  Executor make_executor(Program program) const;
  uint64_t stored_step();

  Env& env_;
  TrainerOptions options_;
  std::unique_ptr<const RecordedModel> recorded_;
  std::unique_ptr<Communicator> communicator_;
  const RankDuties duties_;
  const std::unique_ptr<Lane> lane_;              // of step() and of inference
  std::vector<std::unique_ptr<Worker>> workers_;  // one, or one for each thread
  size_t active_ = 1;                             // how many of them compute
  std::unique_ptr<class ChunkedCompute> chunks_;  // instead of workers
  ByFetchList<Worker> fetching_;
  ByFetchList<Executor> inferring_;
  std::unique_ptr<Executor> evaluator_;  // made when first used
  Measures evaluator_measures_;
  std::vector<const Edge*> edge_by_value_;  // by variable number, null where none
  MetricTally step_metrics_;                // of the last step()
  FiniteCheck finite_;
  std::atomic<uint64_t> steps_ = 0;
  uint64_t passes_ = 0;                          // begun
  std::atomic<uint64_t> batches_ = 0, all_ = 0;  // committed in the pass, and in all
  bool stepping_ = false;                        // a pass is open that consists of step() calls
  Progress stepped_;                             // in that pass
  Env::Time stepping_since_;
  Activity activity_;
  const std::shared_ptr<Metrics> metrics_;
  TrainerMetrics counts_{*metrics_};
};

}  // namespace argosy

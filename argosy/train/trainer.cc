#include "argosy/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/fleet/sharded_store.h"
#include "argosy/graph/rank_sum.h"
#include "argosy/train/chunks.h"
#include "argosy/train/saved_model.h"

namespace argosy {
namespace {

/// Remembers the best value of a metric and how long ago it was.
class Patience {
 public:
  explicit Patience(const EarlyStop& stop) : stop_(stop) {}
  bool exhausted(const std::vector<Metric>& metrics) {
    const auto found = std::ranges::find(metrics, stop_.metric, &Metric::name);
    check<ConfigError>(found != metrics.end(), "early_stop: the model has no metric '",
                       stop_.metric, "'");
    const double score = stop_.higher_is_better ? found->value : -found->value;
    waited_ = score > best_ ? 0 : waited_ + 1;
    best_ = std::max(best_, score);
    return waited_ >= stop_.patience;
  }

 private:
  EarlyStop stop_;
  double best_ = -INFINITY;
  int waited_ = 0;
};

}  // namespace

/// One pass over the data, as its threads share it.
struct Trainer::Epoch {
  Epoch(const FitOptions& options, const Measures& measures)
      : options(options), figures(measures) {}

  const FitOptions& options;
  std::optional<ProgressLine>* line = nullptr;
  Env::Time start;
  std::mutex mutex;  // guards what follows, where there are several threads
  Progress progress;
  Figures figures;
  Next next = Next::go_on;
  std::exception_ptr failure;
  size_t under_way = 0;  // batches that are being read, waiting or being computed
  bool pausing = false;  // for a checkpoint: no new batch begins
  std::condition_variable changed;

  bool checkpoint_due() const {
    return options.checkpoint_every > 0 && progress.step % options.checkpoint_every == 0;
  }
};

namespace {

void sync_batch_norms(Builder& g) { g.always("batch_norm", "sync", int64_t{1}); }

}  // namespace

RecordedModel record(const Model& model, const TrainerOptions& options) {
  RecordedModel result;
  Builder g;
  if (options.strategy.collective.sync_batch_norm) sync_batch_norms(g);
  const ModelOutputs outputs = model(g);
  check<ConfigError>(outputs.loss || !g.program().nodes.empty(), "the model gave back no loss");
  const auto publish = [&](const std::string& name, Var var) {
    if (g.program().var(var.id).name.empty()) g.name(var, name);
    g.output(var);
  };
  const auto measure = [&](const std::string& name, Var var) {
    result.measures.names.push_back(name);
    result.measures.means.push_back(var.id);
    publish(name, var);
  };
  if (outputs.loss) measure("loss", outputs.loss);
  for (const auto& [name, var] : outputs.metrics) measure(name, var);
  for (const auto& [name, var] : outputs.predictions) {
    if (g.program().var(var.id).name.empty()) g.name(var, name);
    result.prediction_names.push_back(g.program().var(var.id).name);
  }
  for (const MeterSpec& spec : outputs.meters) {
    result.measures.names.push_back(spec.name);
    result.measures.scored.push_back(
        {spec.meter, spec.prediction.id, spec.label.id, spec.group.id});
    g.output(spec.prediction);
    g.output(spec.label);
    if (spec.group) g.output(spec.group);
  }
  if (outputs.loss) g.backward(outputs.loss);
  result.plan = make_plan(g.program(), options.optimizer, options.seed, options.tables);
  return result;
}

Trainer::Trainer(Env& env, Model model, TrainerOptions options)
    : env_(env), model_(std::move(model)), options_(std::move(options)), activity_(env) {
  const int threads = options_.strategy.threads;
  check<ConfigError>(threads > 0, "threads must be positive, got ", threads);
  check<ConfigError>(options_.chunks >= 0, "chunks must not be negative, got ", options_.chunks);
  check<ConfigError>(
      options_.graph == GraphMode::recorded || (threads == 1 && options_.chunks == 0),
      "a dynamic graph runs on one thread, got ", threads);
  check<ConfigError>(
      options_.graph == GraphMode::recorded || options_.device == Executor::kNoDevice,
      "a dynamic graph runs on the CPU, got device ", options_.device);
  RecordedModel recorded = record(model_, options_);
  plan_ = std::move(recorded.plan);
  measures_ = std::move(recorded.measures);
  prediction_names_ = std::move(recorded.prediction_names);
  figures_.emplace(measures_);
  // In chunks all threads work on one batch, between its fetch and its commit. A worker's step in
  // sync mode is one batch, and so is a rank's, so their threads always do.
  Strategy strategy = options_.strategy;
  const bool one_batch = strategy.mode == "sync" || strategy.mode == "collective";
  if (one_batch && threads > 1 && options_.chunks == 0) options_.chunks = threads;
  if (options_.chunks > 0) strategy.threads = 1;
  check<ConfigError>(options_.chunks == 0 || rank_sum_sizes(plan_.worker).empty(),
                     "sync_batch_norm: the threads of a rank share a batch in ", options_.chunks,
                     " chunks, expected one thread");
  communicator_ =
      make_communicator(plan_, strategy, options_.connect ? options_.connect(plan_) : Wires{});
  if (options_.chunks > 0) {
    chunks_ =
        std::make_unique<ChunkedCompute>(plan_, measures_, static_cast<size_t>(options_.chunks),
                                         static_cast<size_t>(threads), executor_options());
  }
  active_ = static_cast<size_t>(strategy.threads);
  for (int i = 0; i < strategy.threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(make_executor(plan_.worker)));
    for (int j = 0; j <= communicator_->lookahead(); ++j)
      workers_.back()->batches.push_back(std::make_unique<Batch>());
  }
  edge_by_value_.resize(plan_.worker.vars.size());
  for (const Edge& edge : plan_.edges) edge_by_value_[edge.value.index()] = &edge;
}

Trainer::~Trainer() = default;

Executor::Options Trainer::executor_options() const {
  return {.check_nan = options_.check_nan, .device = options_.device};
}

Executor Trainer::make_executor(Program program) const {
  Executor::Options options = executor_options();
  options.ranks = communicator_->rank_sum();
  Executor executor(std::move(program), options);
  for (const Edge& edge : plan_.edges) {
    if (edge.kind != VarKind::param) continue;
    if (Tensor place = communicator_->place_of(edge.target); place.numel() > 0)
      executor.bind_output(edge.value, std::move(place));
  }
  return executor;
}

void Trainer::set_threads(int threads) {
  check<ConfigError>(chunks_ == nullptr, "threads: they are fixed where they share a batch");
  check<ConfigError>(threads > 0 && threads <= options_.strategy.threads, "threads is ", threads,
                     ", expected 1 to ", options_.strategy.threads);
  end_steps();
  active_ = static_cast<size_t>(threads);
  communicator_->set_threads(threads);
}

/// Steps on their own are a pass, which ends when something else begins.
void Trainer::begin_step(Batch& batch) {
  check<ConfigError>(!plan_.tables.empty(), "the model is only evaluated: it has no loss");
  if (!std::exchange(stepping_, true)) {
    activity_.begin(Doing::meeting);
    communicator_->pass(Pass::begin);
  }
  communicator_->prepare(batch);
}

void Trainer::end_steps() {
  if (!std::exchange(stepping_, false)) return;
  communicator_->pass(Pass::thread_done);
  communicator_->drain();
  communicator_->pass(Pass::end);
}

std::span<const double> Trainer::step(Batch& batch) {
  begin_step(batch);
  figures_->reset();
  step_whole(batch, *figures_);
  return figures_->means();
}

std::vector<Tensor> Trainer::step(Batch& batch, std::span<const VarId> fetch) {
  std::unique_ptr<Worker>& worker = fetching_[{fetch.begin(), fetch.end()}];
  if (worker == nullptr) {
    Program program = plan_.worker;
    for (const VarId id : fetch)
      if (std::ranges::find(program.outputs, id) == program.outputs.end())
        program.outputs.push_back(id);
    worker = std::make_unique<Worker>(make_executor(std::move(program)));
  }
  begin_step(batch);
  batch.step = communicator_->batch_number(++steps_);
  activity_.begin(Doing::fetching);
  communicator_->fetch(batch);
  activity_.begin(Doing::computing);
  compute(batch, *worker);
  activity_.begin(Doing::sending);
  communicator_->commit(batch);
  std::vector<Tensor> values;
  values.reserve(fetch.size());
  for (const VarId id : fetch) values.push_back(worker->executor.value(id));
  return values;
}

std::vector<Tensor> Trainer::infer(Batch& batch, std::span<const VarId> fetch) {
  std::unique_ptr<Executor>& executor = inferring_[{fetch.begin(), fetch.end()}];
  if (executor == nullptr)
    executor = std::make_unique<Executor>(plan_.worker.for_inference({fetch.begin(), fetch.end()}),
                                          executor_options());
  activity_.begin(Doing::evaluating);
  communicator_->fetch(batch, Purpose::inference);
  executor->run(batch.feeds);
  std::vector<Tensor> values;
  values.reserve(fetch.size());
  for (const VarId id : executor->program().outputs) values.push_back(executor->value(id));
  return values;
}

/// On the calling thread, or in chunks.
void Trainer::step_whole(Batch& batch, Figures& figures) {
  batch.step = communicator_->batch_number(++steps_);
  activity_.begin(Doing::fetching);
  communicator_->fetch(batch);
  activity_.begin(Doing::computing);
  if (options_.graph == GraphMode::eager) return step_eager(batch, figures);
  if (chunks_ != nullptr) {
    chunks_->run(batch, *communicator_, {options_.seed, batch.step}, figures);
  } else {
    Worker& worker = *workers_[0];
    compute(batch, worker);
    figures.add(batch.size, [&](VarId id) -> const Tensor& { return worker.executor.value(id); });
  }
  activity_.begin(Doing::sending);
  communicator_->commit(batch);
}

/// The number of rows changes with each batch; their gradients go to memory that only grows, so
/// that the executor has nothing to plan anew.
void Trainer::make_room_for_rows(const Batch& batch, Worker& worker) const {
  worker.row_grads.resize(plan_.tables.size());
  for (const Edge& edge : plan_.edges) {
    if (edge.kind != VarKind::rows) continue;
    const auto rows = static_cast<int64_t>(batch.keys[plan_.key_sets[edge.target]].size());
    const auto dim = static_cast<int64_t>(plan_.tables[edge.target].dim);
    Tensor& memory = worker.row_grads[edge.target];
    if (memory.numel() >= rows * dim && memory.numel() > 0) continue;
    memory = Tensor::uninitialized({std::max<int64_t>(rows + rows / 4, 1), dim}, DType::f32);
    worker.executor.bind_output(edge.value, memory);
  }
}

void Trainer::compute(Batch& batch, Worker& worker) {
  make_room_for_rows(batch, worker);
  worker.executor.run(batch.feeds,
                      [&](VarId id, const Tensor& value) {
                        if (const Edge* edge = edge_by_value_[id.index()])
                          communicator_->deliver(batch, *edge, value);
                      },
                      {options_.seed, batch.step});
}

void Trainer::step_eager(Batch& batch, Figures& figures) {
  Builder g(
      [&](const VarDesc& desc) {
        const auto feed = batch.feeds.find(desc.name);
        check<ConfigError>(feed != batch.feeds.end(), desc.at, ": ", name(desc.kind), " '",
                           desc.name, "' ", desc.type, " is not fed");
        return feed->second;
      },
      {.seed = {options_.seed, batch.step},
       .check_nan = options_.check_nan,
       .ranks = communicator_->rank_sum()});
  if (options_.strategy.collective.sync_batch_norm) sync_batch_norms(g);
  const ModelOutputs outputs = model_(g);
  g.backward(outputs.loss);
  for (const VarGrad& pair : g.program().grads)
    communicator_->deliver(batch, edge_of(g.program().var(pair.var).name), g.value(pair.grad));
  for (const StateUpdate& update : g.program().updates)
    communicator_->deliver(batch, edge_of(g.program().var(update.state).name),
                           g.value(update.next));
  // The eager program numbers its variables as the recorded one did.
  figures.add(batch.size, [&](VarId id) -> const Tensor& { return g.value(id); });
  activity_.begin(Doing::sending);
  communicator_->commit(batch);  // while the builder holds what was delivered
}

const Edge& Trainer::edge_of(const std::string& variable) const {
  const auto found = std::ranges::find_if(
      plan_.edges, [&](const Edge& e) { return plan_.worker.var(e.var).name == variable; });
  check<ConfigError>(found != plan_.edges.end(), "the eager model trains '", variable,
                     "', which it did not have when it was first recorded");
  return *found;
}

/// With the epoch's mutex held.
void Trainer::after_step(Epoch& epoch, size_t instances) {
  Progress& progress = epoch.progress;
  ++progress.step;
  progress.samples += instances;
  activity_.end_step(progress.epoch, progress.step, instances);
  progress.seconds = std::chrono::duration<double>(env_.now() - epoch.start).count();
  const bool tell = epoch.options.on_step &&
                    (progress.step - 1) % std::max<uint64_t>(epoch.options.on_step_every, 1) == 0;
  const bool show = epoch.line->has_value() && (*epoch.line)->due();
  const bool report = epoch.options.progress_due && epoch.options.progress_due();
  if (!tell && !show && !report) return;
  progress.metrics = epoch.figures.current();
  if (report) epoch.options.on_progress(progress);
  if (show) (*epoch.line)->show(progress);
  if (tell && epoch.options.on_step(progress) == Next::stop) epoch.next = Next::stop;
}

void Trainer::checkpoint(const Dataset& data, Epoch& epoch) {
  activity_.begin(Doing::saving);
  communicator_->drain();
  epoch.options.checkpoint({epoch.progress.epoch, data.position()});
}

/// Reads one more batch ahead; false at the end of the data.
bool Trainer::read_one(Dataset& data, Worker& worker) {
  const auto free = std::ranges::find_if(worker.batches, [&](const auto& batch) {
    return std::ranges::find(worker.read, batch.get()) == worker.read.end();
  });
  activity_.begin(Doing::reading);
  const Env::Time asked = env_.now();
  const bool more = data.next(**free);
  worker.reading += std::chrono::duration<double>(env_.now() - asked).count();
  if (!more) return false;
  communicator_->prepare(**free);
  worker.read.push_back(free->get());
  return true;
}

/// The loop of the only thread, or of the one that shares out chunks.
void Trainer::run_alone(Dataset& data, Worker& worker, Epoch& epoch) {
  const uint64_t every = epoch.options.checkpoint_every;
  uint64_t batches = epoch.progress.step;
  while (epoch.next == Next::go_on) {
    // Nothing is read beyond a checkpoint that is to come.
    while (worker.read.size() < worker.batches.size() &&
           (worker.read.empty() || every == 0 || batches % every != 0) && read_one(data, worker))
      ++batches;
    if (worker.read.empty()) return;
    Batch& batch = *worker.read.front();
    step_whole(batch, epoch.figures);
    worker.read.pop_front();
    epoch.progress.reading = worker.reading;
    after_step(epoch, batch.size);
    if (epoch.checkpoint_due()) checkpoint(data, epoch);
  }
}

/// Gives the lock up while it computes.
void Trainer::compute_next(Worker& worker, Epoch& epoch, std::unique_lock<std::mutex>& lock) {
  Batch& batch = *worker.read.front();
  lock.unlock();
  batch.step = communicator_->batch_number(++steps_);
  activity_.begin(Doing::fetching);
  communicator_->fetch(batch);
  activity_.begin(Doing::computing);
  compute(batch, worker);
  activity_.begin(Doing::sending);
  communicator_->commit(batch);
  lock.lock();
  worker.read.pop_front();
  --epoch.under_way;
  epoch.changed.notify_all();
  epoch.progress.reading += std::exchange(worker.reading, 0);
  epoch.figures.add(batch.size,
                    [&](VarId id) -> const Tensor& { return worker.executor.value(id); });
  after_step(epoch, batch.size);
}

/// The loop of one of several threads, each with batches of its own.
void Trainer::run_worker(Dataset& data, Worker& worker, Epoch& epoch) try {
  bool more = true, saves = false;  // saves: this thread makes the checkpoint that is due
  std::unique_lock lock(epoch.mutex);
  while (epoch.next == Next::go_on && !epoch.failure) {
    while (more && !epoch.pausing && worker.read.size() < worker.batches.size()) {
      ++epoch.under_way;
      lock.unlock();
      more = read_one(data, worker);
      lock.lock();
      if (!more) --epoch.under_way;
    }
    if (!worker.read.empty()) {
      compute_next(worker, epoch, lock);
      if (epoch.checkpoint_due() && !epoch.pausing) epoch.pausing = saves = true;
    }
    if (!worker.read.empty()) continue;
    epoch.changed.notify_all();
    if (saves) {
      epoch.changed.wait(lock, [&] { return epoch.under_way == 0 || epoch.failure; });
      if (!epoch.failure) checkpoint(data, epoch);
      epoch.pausing = saves = false;
      epoch.changed.notify_all();
    }
    if (!more) break;
    epoch.changed.wait(lock, [&] { return !epoch.pausing || epoch.failure; });
  }
  lock.unlock();
  communicator_->pass(Pass::thread_done);
} catch (...) {
  {
    const std::scoped_lock lock(epoch.mutex);
    // The batch of this thread stays under way: no checkpoint may follow that counts it as done.
    if (!epoch.failure) epoch.failure = std::current_exception();
    epoch.pausing = false;
    epoch.changed.notify_all();
  }
  try {
    communicator_->pass(Pass::thread_done);  // nobody waits for this thread
  } catch (const std::exception&) {
    return;  // the first failure is the one to report
  }
}

void Trainer::run_epoch(Dataset& data, Epoch& epoch) {
  end_steps();
  for (const auto& worker : workers_) {
    worker->read.clear();
    worker->reading = 0;
  }
  activity_.begin(Doing::meeting);
  communicator_->pass(Pass::begin);
  if (active_ == 1) {
    run_alone(data, *workers_[0], epoch);
    communicator_->pass(Pass::thread_done);
  } else {
    std::vector<std::jthread> threads;
    threads.reserve(active_);
    for (size_t i = 0; i < active_; ++i)
      threads.emplace_back([&, worker = workers_[i].get()] { run_worker(data, *worker, epoch); });
    threads.clear();
    if (epoch.failure) std::rethrow_exception(epoch.failure);
  }
  activity_.begin(Doing::sending);
  communicator_->drain();
  communicator_->pass(Pass::end);
}

Progress Trainer::fit(Dataset& data, const FitOptions& options) {
  check<ConfigError>(options.epochs > 0, "epochs must be positive, got ", options.epochs);
  check<ConfigError>(!options.early_stop || options.test != nullptr, "early_stop needs a test set");
  std::optional<ProgressLine> line;
  if (options.show != nullptr) line.emplace(env_, options.show);
  std::optional<Patience> patience;
  if (options.early_stop) patience.emplace(*options.early_stop);

  const ResumePoint resume = options.resume.value_or(ResumePoint{});
  communicator_->skip_passes(static_cast<uint64_t>(resume.epoch) - 1);
  Progress last;
  for (int number = resume.epoch; number <= options.epochs; ++number) {
    Epoch epoch(options, measures_);
    epoch.line = &line;
    Progress& progress = epoch.progress;
    progress.epoch = number;
    progress.epochs = options.epochs;
    const DataPosition from = number == resume.epoch ? resume.data : DataPosition{};
    progress.step = progress.resumed_at = from.batches;
    activity_.begin(Doing::reading);
    data.begin_epoch(options_.seed + static_cast<uint64_t>(number), from);
    progress.steps = data.batches();
    epoch.start = env_.now();
    run_epoch(data, epoch);
    check<DataError>(progress.step > 0, "epoch ", number, " had no batch: the data set is empty");
    if (options.join) {
      activity_.begin(Doing::meeting);
      options.join(epoch.figures);
      progress.samples = epoch.figures.instances();
    }
    progress.metrics = epoch.figures.totals();
    const std::vector<Metric> test =
        options.test != nullptr ? evaluate(*options.test) : std::vector<Metric>{};
    if (line) {
      std::string note;
      for (const Metric& metric : test)
        note += fmt::format("  test {} {:.4f}", metric.name, metric.value);
      line->finish_epoch(progress, note);
      for (const std::string& text : data.notes()) fmt::print(options.show, "{}\n", text);
      for (const std::string& text : communicator_->notes()) fmt::print(options.show, "{}\n", text);
    }
    Next next = epoch.next;
    if (options.on_epoch && options.on_epoch(progress, test) == Next::stop) next = Next::stop;
    if (patience && patience->exhausted(test)) next = Next::stop;
    last = std::move(progress);
    if (next == Next::stop) break;
  }
  return last;
}

std::vector<Metric> Trainer::evaluate(Dataset& data) {
  if (evaluator_ == nullptr) {
    evaluator_ = std::make_unique<Executor>(plan_.worker.for_inference(measures_.variables()),
                                            executor_options());
    evaluator_measures_ = measures_.renamed(evaluator_->program().outputs);
  }
  Batch batch;
  Figures figures(evaluator_measures_);
  activity_.begin(Doing::evaluating);
  data.begin_epoch(0);
  while (data.next(batch)) {
    activity_.begin(Doing::evaluating);
    communicator_->fetch(batch, Purpose::inference);
    evaluator_->run(batch.feeds);
    figures.add(batch.size, [&](VarId id) -> const Tensor& { return evaluator_->value(id); });
  }
  if (ShardedStore* const sharded = communicator_->sharded()) sharded->end_inference();
  return figures.totals();
}

void Trainer::first_does(bool first, const std::function<void()>& task) {
  ShardedStore* const sharded = communicator_->sharded();
  if (!first) {
    if (sharded != nullptr) sharded->help(env_);
    return;
  }
  if (sharded != nullptr) sharded->begin_alone();
  task();
  if (sharded != nullptr) sharded->end_alone();
}

void Trainer::leave() {
  activity_.begin(Doing::ending);
  end_steps();
  communicator_->pass(Pass::leave);
}

void Trainer::save(const std::string& dir, const ResumePoint& resume) {
  activity_.begin(Doing::saving);
  communicator_->drain();
  save_checkpoint(env_, dir, communicator_->store(), resume);
}

ResumePoint Trainer::load(const std::string& dir) {
  activity_.begin(Doing::loading);
  communicator_->drain();
  ResumePoint resume = load_checkpoint(env_, dir, communicator_->store());
  steps_ = stored_step();
  return resume;
}

uint64_t Trainer::stored_step() {
  const std::vector<NamedTensor> persistables = communicator_->store().persistables();
  return static_cast<uint64_t>(
      std::ranges::find(persistables, "@step", &NamedTensor::name)->value.as<int64_t>()[0]);
}

void Trainer::take_loaded() {
  activity_.begin(Doing::loading);
  end_steps();
  communicator_->pass(Pass::loaded);
  steps_ = stored_step();
}

void Trainer::load_states(const std::string& dir) {
  std::vector<NamedTensor> states = communicator_->store().persistables();
  std::erase_if(states, [&](const NamedTensor& tensor) {
    return std::ranges::find(plan_.states, tensor.name, &VarDesc::name) == plan_.states.end();
  });
  if (!states.empty()) argosy::load_states(env_, dir, states);
}

void Trainer::export_inference(const std::string& dir, std::vector<std::string> predictions) {
  activity_.begin(Doing::saving);
  communicator_->drain();
  if (predictions.empty()) predictions = prediction_names_;
  save_inference(env_, dir, plan_.worker, predictions, communicator_->store());
}

}  // namespace argosy

#include "argosy/train/trainer.h"

#include <algorithm>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/graph/sum_over_ranks.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/ranks/sharded_store.h"
#include "argosy/modes/remote.h"
#include "argosy/plan/memory_limit.h"
#include "argosy/ps/client.h"
#include "argosy/ps/tier_metrics.h"
#include "argosy/train/chunks.h"
#include "argosy/train/saved_model.h"

namespace argosy {
namespace {

void sync_batch_norms(Builder& g) { g.always("batch_norm", "sync", int64_t{1}); }

}  // namespace

RecordedModel record(const Model& model, const TrainerOptions& options) {
  RecordedModel result;
  result.model = model;
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
  result.loss = outputs.loss.id;
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
  limit_memory(result.plan.tables, options.tables, options.memory_limit);
  return result;
}

namespace {

/// In chunks all threads work on one batch, between its fetch and its commit. Where a step of this
/// process is one batch, its threads always do.
int chunks_of(const TrainerOptions& options) {
  const int threads = options.strategy.threads;
  const bool one_batch = mode(options.strategy.mode).threads_share_a_batch;
  return one_batch && threads > 1 && options.chunks == 0 ? threads : options.chunks;
}

void check_options(const TrainerOptions& options, const Plan& plan) {
  const int threads = options.strategy.threads;
  check<ConfigError>(threads > 0, "threads must be positive, got ", threads);
  check<ConfigError>(options.chunks >= 0, "chunks must not be negative, got ", options.chunks);
  check<ConfigError>(options.graph == GraphMode::recorded || (threads == 1 && options.chunks == 0),
                     "a dynamic graph runs on one thread, got ", threads);
  check<ConfigError>(options.graph == GraphMode::recorded || options.device == Executor::kNoDevice,
                     "a dynamic graph runs on the CPU, got device ", options.device);
  const int chunks = chunks_of(options);
  check<ConfigError>(chunks == 0 || sum_over_ranks_sizes(plan.worker).empty(),
                     "sync_batch_norm: the threads of a rank share a batch in ", chunks,
                     " chunks, expected one thread");
}

/// Threads for the communicator: those that share a batch count as one.
Strategy checked_strategy(const TrainerOptions& options, const Plan& plan) {
  check_options(options, plan);
  Strategy strategy = options.strategy;
  if (chunks_of(options) > 0) strategy.threads = 1;
  return strategy;
}

/// Rows on the disk lie where the options say.
Wires with_home(Env& env, const TrainerOptions& options, const Plan& plan, Wires wires) {
  const auto in_memory = [](const ps::TableSpec& spec) { return spec.store == "memory"; };
  if (wires.home.env != nullptr || std::ranges::all_of(plan.tables, in_memory)) return wires;
  wires.home = options.table_folder.empty() ? ps::TableHome::temporary(env)
                                            : ps::TableHome::in(env, options.table_folder);
  wires.home.metrics = std::make_shared<ps::TierMetrics>(options.metrics);
  return wires;
}

TrainerOptions with_metrics(TrainerOptions options, const Wires& wires) {
  if (options.metrics == nullptr)
    options.metrics =
        wires.servers != nullptr ? wires.servers->metrics() : std::make_shared<Metrics>();
  return options;
}

}  // namespace

Trainer::Trainer(Env& env, const Model& model, const TrainerOptions& options, const Wires& wires)
    : Trainer(env, std::make_unique<RecordedModel>(record(model, options)), wires, options) {}

Trainer::Trainer(Env& env, std::unique_ptr<const RecordedModel> recorded, const Wires& wires,
                 TrainerOptions options)
    : env_(env),
      options_(with_metrics(std::move(options), wires)),
      recorded_(std::move(recorded)),
      communicator_(make_communicator(plan(), checked_strategy(options_, plan()),
                                      with_home(env, options_, plan(), wires))),
      duties_(communicator_->duties()),
      lane_(communicator_->make_lane()),
      step_metrics_(recorded_->measures),
      finite_(plan(), recorded_->loss, options_.check_nan),
      activity_(env),
      metrics_(options_.metrics) {
  const auto threads = static_cast<size_t>(options_.strategy.threads);
  if (const int chunks = chunks_of(options_); chunks > 0)
    chunks_ = std::make_unique<ChunkedCompute>(
        plan(), recorded_->measures, static_cast<size_t>(chunks), threads, executor_options());
  active_ = chunks_ != nullptr ? 1 : threads;
  for (size_t i = 0; i < active_; ++i) {
    workers_.push_back(std::make_unique<Worker>(make_executor(plan().worker)));
    for (int j = 0; j <= communicator_->lookahead(); ++j) {
      workers_.back()->slots.push_back(std::make_unique<Slot>());
      workers_.back()->slots.back()->lane = communicator_->make_lane();
    }
  }
  edge_by_value_.resize(plan().worker.vars.size());
  for (const Edge& edge : plan().edges) edge_by_value_[edge.value.index()] = &edge;
}

Trainer::~Trainer() = default;

Executor::Options Trainer::executor_options() const { return {.device = options_.device}; }

Executor Trainer::make_executor(Program program) const {
  Executor::Options options = executor_options();
  options.ranks = duties_.sum;
  Executor executor(std::move(program), options);
  if (duties_.places.empty()) return executor;
  for (const Edge& edge : plan().edges)
    if (edge.kind == VarKind::param && duties_.places[edge.target].numel() > 0)
      executor.bind_output(edge.value, duties_.places[edge.target]);
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

void Trainer::begin_pass() {
  activity_.begin(Doing::meeting);
  ++passes_;
  batches_ = 0;
  communicator_->pass(Pass::begin);
}

/// Steps on their own are a pass, which ends when something else begins.
void Trainer::begin_step(Batch& batch) {
  check<ConfigError>(!plan().parameters.empty() || !plan().tables.empty(),
                     "the model is only evaluated: it has no loss");
  if (!std::exchange(stepping_, true)) {
    begin_pass();
    stepped_ = {};
    stepped_.epoch = stepped_.epochs = static_cast<int>(passes_);
    stepping_since_ = env_.now();
  }
  lane_->prepare(batch);
}

void Trainer::end_step(size_t instances) {
  ++stepped_.step;
  stepped_.samples += instances;
  activity_.end_step(stepped_.epoch, stepped_.step, instances);
  if (options_.observer == nullptr || !options_.observer->due()) return;
  stepped_.seconds = std::chrono::duration<double>(env_.now() - stepping_since_).count();
  options_.observer->show(stepped_);
}

Trained Trainer::count_batch() {
  const uint64_t batches = ++batches_;
  return {.pass = passes_, .batches = batches, .steps = ++all_};
}

void Trainer::end_steps() {
  if (!std::exchange(stepping_, false)) return;
  communicator_->pass(Pass::thread_done);
  communicator_->drain();
  communicator_->pass(Pass::end);
}

/// One batch, from its fetch to its commit.
void Trainer::run_step(Batch& batch, Lane& lane, FunctionRef<void()> compute) {
  batch.step = duties_.batch_number(++steps_);
  const Env::Time begun = activity_.begin(Doing::fetching);
  lane.fetch(batch);
  const Env::Time fetched = activity_.begin(Doing::computing);
  compute();
  const Env::Time computed = activity_.begin(Doing::sending);
  batch.trained = count_batch();
  batch.replayed = batch.trained <= communicator_->replays();
  lane.commit(batch);
  const Env::Time ended = env_.now();
  counts_.steps.add();
  counts_.examples.add(batch.size);
  counts_.waiting.add((fetched - begun) + (ended - computed));
  counts_.computing.add(computed - fetched);
  counts_.step_seconds.observe(std::chrono::duration<double>(ended - begun).count());
}

std::span<const double> Trainer::step(Batch& batch) {
  begin_step(batch);
  step_metrics_.reset();
  step_whole(batch, *lane_, step_metrics_);
  end_step(batch.size);
  return step_metrics_.means();
}

std::vector<Tensor> Trainer::step(Batch& batch, std::span<const VarId> fetch) {
  Worker& worker = fetching_.get(fetch, [&] {
    Program program = plan().worker;
    for (const VarId id : fetch)
      if (std::ranges::find(program.outputs, id) == program.outputs.end())
        program.outputs.push_back(id);
    return std::make_unique<Worker>(make_executor(std::move(program)));
  });
  begin_step(batch);
  run_step(batch, *lane_, [&] { compute(batch, *lane_, worker); });
  end_step(batch.size);
  std::vector<Tensor> values;
  values.reserve(fetch.size());
  for (const VarId id : fetch) values.push_back(worker.executor.value(id));
  return values;
}

std::vector<Tensor> Trainer::infer(Batch& batch, std::span<const VarId> fetch) {
  Executor& executor = inferring_.get(fetch, [&] {
    return std::make_unique<Executor>(plan().worker.for_inference({fetch.begin(), fetch.end()}),
                                      executor_options());
  });
  activity_.begin(Doing::evaluating);
  lane_->fetch(batch, ps::Purpose::inference);
  executor.run(batch.feeds);
  std::vector<Tensor> values;
  values.reserve(fetch.size());
  for (const VarId id : executor.program().outputs) values.push_back(executor.value(id));
  return values;
}

/// On the calling thread, or in chunks.
void Trainer::step_whole(Batch& batch, Lane& lane, MetricTally& metrics) {
  std::optional<Builder> eager;  // holds what was delivered until it is committed
  run_step(batch, lane, [&] {
    if (options_.graph == GraphMode::eager) {
      compute_eager(batch, lane, eager);
      // The eager program numbers its variables as the recorded one did.
      metrics.add(batch.size, [&](VarId id) -> const Tensor& { return eager->value(id); });
    } else if (chunks_ != nullptr) {
      chunks_->run(batch, lane, {options_.seed, batch.step}, metrics, finite_);
    } else {
      Worker& worker = *workers_[0];
      compute(batch, lane, worker);
      metrics.add(batch.size, [&](VarId id) -> const Tensor& { return worker.executor.value(id); });
    }
  });
}

/// The number of rows changes with each batch; their gradients go to memory that only grows, so
/// that the executor has nothing to plan anew.
void Trainer::make_room_for_rows(const Batch& batch, Worker& worker) const {
  worker.row_grads.resize(plan().tables.size());
  for (const Edge& edge : plan().edges) {
    if (edge.kind != VarKind::rows) continue;
    const auto rows = static_cast<int64_t>(batch.keys[plan().key_sets[edge.target]].size());
    const auto dim = static_cast<int64_t>(plan().tables[edge.target].dim);
    Tensor& memory = worker.row_grads[edge.target];
    if (memory.numel() >= rows * dim && memory.numel() > 0) continue;
    memory = Tensor::uninitialized({std::max<int64_t>(rows + rows / 4, 1), dim}, DType::f32);
    worker.executor.bind_output(edge.value, memory);
  }
}

void Trainer::compute(Batch& batch, Lane& lane, Worker& worker) {
  make_room_for_rows(batch, worker);
  const RunSeed seed{options_.seed, batch.step};
  worker.executor.run(
      batch.feeds,
      [&](VarId id, const Tensor& value) {
        finite_.look(batch, id, value, seed);
        if (const Edge* edge = edge_by_value_[id.index()]) lane.deliver(batch, *edge, value);
      },
      seed);
}

void Trainer::compute_eager(Batch& batch, Lane& lane, std::optional<Builder>& g) {
  g.emplace(
      [&](const VarDesc& desc) {
        const auto feed = batch.feeds.find(desc.name);
        check<ConfigError>(feed != batch.feeds.end(), desc.at, ": ", name(desc.kind), " '",
                           desc.name, "' ", desc.type, " is not fed");
        return feed->second;
      },
      Builder::EagerOptions{.seed = {options_.seed, batch.step}, .ranks = duties_.sum});
  if (options_.strategy.collective.sync_batch_norm) sync_batch_norms(*g);
  const ModelOutputs outputs = recorded_->model(*g);
  g->backward(outputs.loss);
  const RunSeed seed{options_.seed, batch.step};
  finite_.look(batch, outputs.loss.id, outputs.loss.value(), seed);
  const auto deliver = [&](VarId var, const Tensor& value) {
    const Edge& edge = edge_of(g->program().var(var).name);
    finite_.look(batch, edge.value, value, seed);
    lane.deliver(batch, edge, value);
  };
  for (const VarGrad& pair : g->program().grads) deliver(pair.var, g->value(pair.grad));
  for (const StateUpdate& update : g->program().updates)
    deliver(update.state, g->value(update.next));
}

const Edge& Trainer::edge_of(const std::string& variable) const {
  const auto found = std::ranges::find_if(
      plan().edges, [&](const Edge& e) { return plan().worker.var(e.var).name == variable; });
  check<ConfigError>(found != plan().edges.end(), "the eager model trains '", variable,
                     "', which it did not have when it was first recorded");
  return *found;
}

std::vector<Metric> Trainer::evaluate(Dataset& data) {
  if (evaluator_ == nullptr) {
    evaluator_ = std::make_unique<Executor>(
        plan().worker.for_inference(recorded_->measures.variables()), executor_options());
    evaluator_measures_ = recorded_->measures.renamed(evaluator_->program().outputs);
  }
  Batch batch;
  batch.step = steps_;
  MetricTally metrics(evaluator_measures_);
  activity_.begin(Doing::evaluating);
  data.begin_epoch(0);
  while (data.next(batch)) {
    activity_.begin(Doing::evaluating);
    lane_->fetch(batch, ps::Purpose::inference);
    evaluator_->run(batch.feeds);
    if (recorded_->loss)
      finite_.look(batch, recorded_->loss, evaluator_->value(evaluator_measures_.means[0]),
                   {options_.seed, batch.step});
    metrics.add(batch.size, [&](VarId id) -> const Tensor& { return evaluator_->value(id); });
  }
  if (duties_.sharded != nullptr) duties_.sharded->end_inference();
  return metrics.totals();
}

void Trainer::first_does(bool first, const std::function<void()>& task) {
  ShardedStore* const sharded = duties_.sharded;
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

namespace {

RemoteStore& servers_of(TableStore& store) {
  auto* const servers = dynamic_cast<RemoteStore*>(&store);
  check<ConfigError>(servers != nullptr, "a cut is made by servers, and there are none");
  return *servers;
}

}  // namespace

std::function<void()> Trainer::prepare_cut() {
  return servers_of(communicator_->store()).prepare_cut();
}

std::function<SavedCut()> Trainer::begin_cut(const std::string& dir) {
  return servers_of(communicator_->store()).begin_cut(dir);
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
    return std::ranges::find(plan().states, tensor.name, &VarDesc::name) == plan().states.end();
  });
  if (!states.empty()) argosy::load_states(env_, dir, states);
}

void Trainer::export_inference(const std::string& dir, std::vector<std::string> predictions) {
  activity_.begin(Doing::saving);
  communicator_->drain();
  if (predictions.empty()) predictions = recorded_->prediction_names;
  save_inference(env_, dir, plan().worker, predictions, communicator_->store());
}

}  // namespace argosy

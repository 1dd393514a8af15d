#include "argosy/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "argosy/base/error.h"
#include "argosy/train/saved_model.h"

namespace argosy {
namespace {

double to_number(const Tensor& value) {
  return value.dtype() == DType::f32 ? static_cast<double>(value.as<float>()[0])
                                     : value.as<double>()[0];
}

/// Means over many batches, each weighted by its instances.
class Mean {
 public:
  void add(std::span<const double> values, size_t weight) {
    totals_.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i)
      totals_[i] += values[i] * static_cast<double>(weight);
    weight_ += weight;
  }
  std::vector<double> values() const {
    std::vector<double> means = totals_;
    for (double& mean : means) mean /= static_cast<double>(std::max<uint64_t>(weight_, 1));
    return means;
  }

 private:
  std::vector<double> totals_;
  uint64_t weight_ = 0;
};

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

Trainer::Trainer(Env& env, Model model, TrainerOptions options)
    : env_(env), model_(std::move(model)), options_(std::move(options)), executor_(Program{}) {
  Builder g;
  const ModelOutputs outputs = model_(g);
  check<ConfigError>(static_cast<bool>(outputs.loss), "the model gave back no loss");
  const auto publish = [&](const std::string& name, Var var) {
    if (g.program().var(var.id).name.empty()) g.name(var, name);
    g.output(var);
  };
  metric_names_.emplace_back("loss");
  metric_vars_.push_back(outputs.loss.id);
  publish("loss", outputs.loss);
  for (const auto& [name, var] : outputs.metrics) {
    metric_names_.push_back(name);
    metric_vars_.push_back(var.id);
    publish(name, var);
  }
  for (const auto& [name, var] : outputs.predictions) {
    if (g.program().var(var.id).name.empty()) g.name(var, name);
    prediction_names_.push_back(g.program().var(var.id).name);
  }
  g.backward(outputs.loss);
  plan_ = make_plan(g.program(), options_.optimizer, options_.seed);
  communicator_ = make_communicator(plan_, options_.strategy);
  executor_ = Executor(plan_.worker, {.check_nan = options_.check_nan});
  edge_by_value_.resize(plan_.worker.vars.size());
  for (const Edge& edge : plan_.edges) edge_by_value_[edge.value.index()] = &edge;
  values_.resize(metric_vars_.size());
}

Trainer::~Trainer() = default;

std::span<const double> Trainer::step(Batch& batch) {
  batch.step = ++steps_;
  communicator_->fetch(batch);
  const RunSeed seed{options_.seed, batch.step};
  if (options_.graph == GraphMode::recorded) {
    run_recorded(batch, seed);
  } else {
    run_eager(batch, seed);
  }
  return values_;
}

void Trainer::run_recorded(Batch& batch, const RunSeed& seed) {
  executor_.run(
      batch.feeds,
      [&](VarId id, const Tensor& value) {
        if (const Edge* edge = edge_by_value_[id.index()])
          communicator_->deliver(batch, *edge, value);
      },
      seed);
  for (size_t i = 0; i < metric_vars_.size(); ++i)
    values_[i] = to_number(executor_.value(metric_vars_[i]));
  communicator_->commit(batch);
}

void Trainer::run_eager(Batch& batch, const RunSeed& seed) {
  Builder g(
      [&](const VarDesc& desc) {
        const auto feed = batch.feeds.find(desc.name);
        check<ConfigError>(feed != batch.feeds.end(), desc.at, ": ", name(desc.kind), " '",
                           desc.name, "' ", desc.type, " is not fed");
        return feed->second;
      },
      {.seed = seed, .check_nan = options_.check_nan});
  const ModelOutputs outputs = model_(g);
  g.backward(outputs.loss);
  for (const VarGrad& pair : g.program().grads)
    communicator_->deliver(batch, edge_of(g.program().var(pair.var).name), g.value(pair.grad));
  for (const StateUpdate& update : g.program().updates)
    communicator_->deliver(batch, edge_of(g.program().var(update.state).name),
                           g.value(update.next));
  values_[0] = to_number(outputs.loss.value());
  for (size_t i = 0; i < outputs.metrics.size(); ++i)
    values_[i + 1] = to_number(outputs.metrics[i].second.value());
  communicator_->commit(batch);
}

const Edge& Trainer::edge_of(const std::string& variable) const {
  const auto found = std::ranges::find_if(
      plan_.edges, [&](const Edge& e) { return plan_.worker.var(e.var).name == variable; });
  check<ConfigError>(found != plan_.edges.end(), "the eager model trains '", variable,
                     "', which it did not have when it was first recorded");
  return *found;
}

std::vector<Metric> Trainer::named(std::span<const double> values) const {
  std::vector<Metric> metrics;
  for (size_t i = 0; i < values.size(); ++i) metrics.push_back({metric_names_[i], values[i]});
  return metrics;
}

Progress Trainer::fit(Dataset& data, const FitOptions& options) {
  check<ConfigError>(options.epochs > 0, "epochs must be positive, got ", options.epochs);
  check<ConfigError>(!options.early_stop || options.test != nullptr, "early_stop needs a test set");
  std::optional<ProgressLine> line;
  if (options.show != nullptr) line.emplace(env_, options.show);
  std::optional<Patience> patience;
  if (options.early_stop) patience.emplace(*options.early_stop);

  Batch batch;
  Progress progress;
  progress.epochs = options.epochs;
  progress.steps = data.batches();
  progress.metrics = named(values_);
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    progress.epoch = epoch;
    progress.step = progress.samples = 0;
    const Env::Time start = env_.now();
    Mean mean;
    Next next = Next::go_on;
    data.begin_epoch(options_.seed + static_cast<uint64_t>(epoch));
    while (next == Next::go_on && data.next(batch)) {
      const std::span<const double> values = step(batch);
      mean.add(values, batch.size);
      ++progress.step;
      progress.samples += batch.size;
      progress.seconds = std::chrono::duration<double>(env_.now() - start).count();
      for (size_t i = 0; i < values.size(); ++i) progress.metrics[i].value = values[i];
      if (line) line->show(progress);
      if (options.on_step) next = options.on_step(progress);
    }
    communicator_->drain();
    check<DataError>(progress.step > 0, "epoch ", epoch, " had no batch: the data set is empty");
    const std::vector<double> means = mean.values();
    for (size_t i = 0; i < means.size(); ++i) progress.metrics[i].value = means[i];
    const std::vector<Metric> test =
        options.test != nullptr ? evaluate(*options.test) : std::vector<Metric>{};
    if (line) {
      std::string note;
      for (const Metric& metric : test)
        note += fmt::format("  test {} {:.4f}", metric.name, metric.value);
      line->finish_epoch(progress, note);
    }
    if (options.on_epoch && options.on_epoch(progress, test) == Next::stop) next = Next::stop;
    if (patience && patience->exhausted(test)) next = Next::stop;
    if (next == Next::stop) break;
  }
  return progress;
}

std::vector<Metric> Trainer::evaluate(Dataset& data) {
  if (evaluator_ == nullptr)
    evaluator_ = std::make_unique<Executor>(plan_.worker.for_inference(metric_vars_),
                                            Executor::Options{.check_nan = options_.check_nan});
  Batch batch;
  Mean mean;
  std::vector<double> values(metric_vars_.size());
  data.begin_epoch(0);
  while (data.next(batch)) {
    communicator_->fetch(batch);
    evaluator_->run(batch.feeds);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = to_number(evaluator_->value(evaluator_->program().outputs[i]));
    mean.add(values, batch.size);
  }
  return named(mean.values());
}

void Trainer::save(const std::string& dir) {
  communicator_->drain();
  save_persistables(env_, dir, communicator_->persistables());
}

void Trainer::load(const std::string& dir) {
  communicator_->drain();
  const std::vector<NamedTensor> persistables = communicator_->persistables();
  load_persistables(env_, dir, persistables);
  steps_ = static_cast<uint64_t>(
      std::ranges::find(persistables, "@step", &NamedTensor::name)->value.as<int64_t>()[0]);
}

void Trainer::export_inference(const std::string& dir) {
  communicator_->drain();
  save_inference(env_, dir, plan_.worker, prediction_names_, communicator_->persistables());
}

}  // namespace argosy
